"""Backbones: from features of two sides to raw logits of every pair."""

from __future__ import annotations

from typing import Annotated, cast

from pydantic import Field
from torch import nn

from mispair.errors import InputError
from mispair.models.imram import IMRAM, IMRAMConfig
from mispair.models.saf import SAF, SAFConfig
from mispair.models.sgr import SGR, SGRConfig
from mispair.models.sizes import InputSizes, Size
from mispair.models.standin import polish
from mispair.models.vse import VSE, VSEConfig

MODELS: dict[str, type[nn.Module]] = {"sgr": SGR, "saf": SAF, "imram": IMRAM, "vse": VSE}
CONFIGS: dict[str, type[SGRConfig] | type[SAFConfig] | type[IMRAMConfig] | type[VSEConfig]] = {
    "sgr": SGRConfig,
    "saf": SAFConfig,
    "imram": IMRAMConfig,
    "vse": VSEConfig,
}
ModelConfig = Annotated[SGRConfig | SAFConfig | IMRAMConfig | VSEConfig, Field(discriminator="name")]

__all__ = ["MODELS", "InputSizes", "ModelConfig", "build_model", "polish", "preset"]


def preset(name: str, size: str = "paper") -> ModelConfig:
    """The named model at its published size (`paper`) or at one that trains on two cores (`small`)."""
    if name not in CONFIGS:
        raise InputError(f"there is no model {name!r}; the models are {', '.join(CONFIGS)}")
    if size not in ("paper", "small"):
        raise InputError(f"there is no preset {size!r}; the presets are paper, small")
    return CONFIGS[name].preset(cast(Size, size))


def build_model(config: ModelConfig, sizes: InputSizes) -> nn.Module:
    """A freshly initialised model (a `RetrievalModel`); the draws come from torch's global generator."""
    if config.name not in MODELS:
        raise InputError(f"there is no model {config.name!r}; the models are {', '.join(MODELS)}")
    return MODELS[config.name](config, sizes)
