"""RunConfig: the sections owned elsewhere, put together."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, SerializeAsAny, model_validator

from mispair.data.config import DataConfig
from mispair.methods import METHODS, MethodConfig, method_preset
from mispair.models import MODELS, ModelConfig, model_preset
from mispair.models.dual import DualConfig
from mispair.models.own import OwnConfig
from mispair.runtime.engine import EngineConfig
from mispair.runtime.train_config import TrainConfig
from mispair.section import Section


def _parse_model(values: Any) -> Any:
    own = isinstance(values, dict) and values.get("name") == "own"
    return OwnConfig.model_validate(values) if own else MODELS.parse(values)


# Validated by the class of that name, which may come from another package.
ModelSection = Annotated[SerializeAsAny[ModelConfig], BeforeValidator(_parse_model)]
MethodSection = Annotated[SerializeAsAny[MethodConfig], BeforeValidator(METHODS.parse)]


class RunConfig(Section):
    """One reproducible run."""

    seed: int = Field(default=0, ge=0, lt=2**63)
    data: DataConfig = DataConfig()
    model: ModelSection = model_preset("vse", "small")
    method: MethodSection = method_preset("l2rm")
    train: TrainConfig = TrainConfig()
    engine: EngineConfig = EngineConfig()

    @model_validator(mode="after")
    def _sensible(self) -> RunConfig:
        warmup = self.method.warmup
        if warmup >= self.train.epochs > 1:  # a single epoch may be one of warm-up
            raise ValueError(
                f"method.warmup_epochs={warmup} leaves nothing of train.epochs={self.train.epochs}; "
                "lower the one or raise the other"
            )
        self._towers_fit()
        return self

    def _towers_fit(self) -> None:
        """Towers that learn read pictures; nothing else does."""
        model, data = self.model, self.data
        tuned = isinstance(model, DualConfig) and model.tune != "head"
        if data.live and not tuned:
            raise ValueError(
                f"data.live reads pictures for towers that learn, and {model.name} reads features; use model.name=dual"
                " with model.tune=lora or full, or leave data.live out"
            )
        if not tuned:
            return
        assert isinstance(model, DualConfig)
        if not data.live:
            raise ValueError(
                f"model.tune={model.tune} trains the towers of an encoder on pictures, and {data.path} is read as"
                " features alone; give the pictures (--images, --encoder, --tune), or train a head: model.tune=head"
            )
        if model.encoder is not None and model.encoder != data.encoder:
            raise ValueError(
                f"model.encoder={model.encoder} are not the towers the pictures are prepared for, data.encoder="
                f"{data.encoder}; name one of them, or the same twice"
            )
        if self.train.drop_regions:
            raise ValueError("train.drop_regions leaves regions out, and towers read whole pictures; use train.crop")
