"""RunConfig: the sections owned elsewhere, put together."""

from __future__ import annotations

from pydantic import model_validator

from mispair.data.config import DataConfig
from mispair.methods import MethodConfig
from mispair.methods.l2rm import L2RMConfig
from mispair.models import ModelConfig
from mispair.models.vse import VSEConfig
from mispair.runtime.engine import EngineConfig
from mispair.runtime.trainer import TrainConfig
from mispair.section import Section


class RunConfig(Section):
    """One reproducible run."""

    seed: int = 0
    data: DataConfig = DataConfig()
    model: ModelConfig = VSEConfig.preset("small")
    method: MethodConfig = L2RMConfig()
    train: TrainConfig = TrainConfig()
    engine: EngineConfig = EngineConfig()

    @model_validator(mode="after")
    def _sensible(self) -> RunConfig:
        warmup = getattr(self.method, "warmup_epochs", 0)
        if warmup >= self.train.epochs and warmup > 0:
            raise ValueError(
                f"method.warmup_epochs={warmup} leaves nothing of train.epochs={self.train.epochs}; "
                "lower the one or raise the other"
            )
        return self
