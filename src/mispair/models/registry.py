"""The backbones there are: those built in, and those other packages bring (entry points in `mispair.models`)."""

from __future__ import annotations

from typing import TypeVar

from mispair.errors import InputError
from mispair.models.base import Backbone, ModelConfig
from mispair.models.dual import Dual
from mispair.models.imram import IMRAM
from mispair.models.one_vector import OneVectorBackbone
from mispair.models.saf import SAF
from mispair.models.sgr import SGR
from mispair.models.sizes import InputSizes
from mispair.models.vse import VSE
from mispair.registry import Registry, nearest

B = TypeVar("B", bound=type[Backbone])

MODELS: Registry[Backbone] = Registry("model", Backbone, ModelConfig, (SGR, SAF, IMRAM, VSE, Dual))


def register_model(cls: B) -> B:
    """Make a backbone known by the name in its `Config`; works as a decorator. Raises InputError if it cannot be."""
    MODELS.register(cls)
    return cls


def model_names() -> list[str]:
    """Names of the backbones, built-in ones first."""
    return MODELS.names()


def model_preset(name: str, size: str = "paper") -> ModelConfig:
    """The named backbone at one of its sizes: as published (`paper`), or one that trains on two cores (`small`).

    A backbone without named sizes has one, its defaults. Raises InputError with the nearest name.
    """
    cls = MODELS.find(name)
    presets = cls.presets or {"paper": cls.Config, "small": cls.Config}
    if size not in presets:
        raise InputError(f"there is no size {size!r} of {name}; {nearest(size, presets)}")
    return presets[size]()


def encodes_one_vector(name: str) -> bool:
    """Whether a backbone (its name, or name:size) encodes an item as one vector, and so needs no words and regions."""
    return issubclass(MODELS.find(name.partition(":")[0]), OneVectorBackbone)


def build_model(config: ModelConfig, sizes: InputSizes) -> Backbone:
    """A freshly initialised network; the draws come from torch's global generator."""
    return MODELS.find(config.name)(config, sizes)
