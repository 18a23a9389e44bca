"""A network of the user's own in the place of a model of ours: the configuration remembers that there was one."""

from __future__ import annotations

from typing import Literal

from mispair.models.base import ModelConfig


class OwnConfig(ModelConfig):
    """Made by the caller (`mispair.train(..., model=MyNetwork)`), not from values; it must be given again to load."""

    name: Literal["own"] = "own"
    describes: str = ""  # how the caller's code calls it
