"""What a configuration says about data: where it lies, how its columns are called, which noise to add."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from mispair.errors import InputError
from mispair.section import Section

Protocol = Literal["image", "caption"]


class NoiseConfig(Section):
    """Mismatches made on purpose in the train split, and with `dev` in that one too; test stays as it is.

    One of: a drawn permutation (`protocol`), a `shift`, a `repeat`, or an `index` file.
    """

    rate: float = Field(default=0.0, ge=0.0, le=1.0)  # share of images (protocol image) or pairs (all others) chosen
    protocol: Protocol = "image"  # move whole images with all their captions, or captions one by one
    seed: int = Field(default=0, ge=0)
    index: str | None = None  # a published or saved index file instead of a draw
    shift: int = 0  # captions off by this many rows ...
    start: int | None = Field(default=None, ge=0)  # ... from this pair on; unset: the last `rate` share of the pairs
    repeat: int = Field(default=0, ge=0)  # so many captions, drawn once, shown with a `rate` share of the pairs
    dev: bool = False  # the same rate and kind in dev, so that the best epoch is chosen by pairs as bad as train's
    oracle: bool = False  # leave the mismatched pairs out: what a training that knew the truth would see

    @model_validator(mode="after")
    def _one_kind(self) -> NoiseConfig:
        kinds = [name for name, used in (("index", self.index), ("shift", self.shift), ("repeat", self.repeat)) if used]
        if len(kinds) > 1:
            raise ValueError(f"noise can be one of index, shift and repeat, not {' and '.join(kinds)}")
        if self.index and self.rate:
            raise ValueError("an index file fixes the noise: leave the rate out")
        if self.dev and (self.index or self.repeat):
            raise ValueError("mismatches of dev are drawn or shifted: leave out dev, or index and repeat")
        if self.start is not None and not self.shift:
            raise ValueError("start says where a shift begins: give shift too")
        if self.start is not None and self.rate:
            raise ValueError("start and rate both say where the shift begins: give one of them")
        return self


def noise_values(said: float | str) -> dict[str, Any]:
    """A share, in figures or words, or the path of an index; the one takes the place of the other."""
    if isinstance(said, str) and said.lower().endswith(".npy"):
        return {"rate": 0.0, "index": said}
    try:
        return {"rate": float(said), "index": None}
    except ValueError:
        raise InputError(
            "the noise is a share of the training pairs such as 0.4, or an index (.npy) that mispair corrupt wrote,"
            f" got {said!r}"
        ) from None


class ColumnsConfig(Section):
    """Names of a table's columns; what is left out is recognised by the usual names."""

    image: str | None = None
    caption: str | None = None
    split: str | None = None
    id: str | None = None


class ScenesConfig(Section):
    """The embedded world. Pictures of a split do not depend on how many others there are."""

    pictures: int = Field(default=2000, ge=8)  # of all splits together
    seed: int = Field(default=0, ge=0)
    dev_share: float = Field(default=0.1, gt=0.0, lt=0.5)
    test_share: float = Field(default=0.25, gt=0.0, lt=0.5)
    feature_noise: float = Field(default=0.05, ge=0.0)  # standard deviation of what is added to each feature


class DataConfig(Section):
    """One data set: a folder, a table file, tar shards, a first .npy, or "scenes"."""

    path: str = "scenes"
    second: str | None = None  # features of the second side (.npy) where it has no words, or beside them
    features: str | None = None  # for a table: features of the first side (.npy)
    joint: str | None = None  # the items of `features` in the space of `second` (.npy): an untrained model's opinion
    ids: str | None = None  # for a table: which image each row of `features` is (.txt, .json or .npy)
    images: str | None = None  # where the pictures are that a table names: a folder, a tar, a folder of tars
    encoder: str | None = None  # what made `features` of the pictures (mispair encoders)
    cells: bool = False  # whether it made a grid of vectors per picture instead of one
    live: bool = False  # pictures and captions are read anew in every batch, as the towers of `encoder` take them
    allow_outside: bool = False  # whether names in a table may lead out of that folder
    columns: ColumnsConfig = ColumnsConfig()
    weights: str | None = None  # how much each training pair counts: a column of a table; W for train_W.npy or W.npy
    decisions: str | None = None  # what reviewers decided about pairs (decisions.jsonl): training takes it as known
    missing: Literal["refuse", "skip"] = "refuse"  # pairs whose image has no features or no picture
    sides: tuple[str, str] = ("image", "text")  # what the two sides are called
    holdout: tuple[float, float] = (0.1, 0.1)  # shares of images for dev and test where the data has no splits
    noise: NoiseConfig | None = None
    vocabulary: str | None = None  # a vocabulary JSON; unset: built from the train captions
    min_count: int = Field(default=4, ge=1)  # how often a word must occur to get an id of its own
    max_words: int = Field(default=200, ge=1)  # longer captions are cut
    limit: int | None = Field(default=None, ge=1)  # the first so many images of each split
    dev_limit: int | None = Field(default=None, ge=1)  # of dev, which chooses the best epoch: less to rank after each
    test_limit: int | None = Field(default=None, ge=1)  # of test, ranked once
    scenes: ScenesConfig = ScenesConfig()

    def changes_since(self, before: DataConfig) -> dict[str, Any]:
        """The values that are others than those of `before`, as plain values by name."""
        old = before.model_dump(mode="json")
        return {name: value for name, value in self.model_dump(mode="json").items() if value != old[name]}

    @field_validator("path", "second", "features", "joint", "ids", "images", "vocabulary", "decisions")
    @classmethod
    def _at_home(cls, path: str | None) -> str | None:
        """A shell puts the home folder in the place of `~/`; nobody does in a configuration file."""
        return os.path.expanduser(path) if path is not None and path.startswith("~/") else path

    @field_validator("path")
    @classmethod
    def _with_a_name(cls, path: str) -> str:
        """`.` and `..` by their names: files beside the data and sentences about it are named after it."""
        return path if Path(path).name not in ("", "..") else os.path.abspath(path)

    @model_validator(mode="after")
    def _sides_differ(self) -> DataConfig:
        if self.live and (self.encoder is None or self.features is not None or self.second is not None):
            raise ValueError("live reads pictures and captions for an encoder: name it, and leave features out")
        if self.sides[0] == self.sides[1] or not all(self.sides):
            raise ValueError(f"the two sides need two different names, got {self.sides}")
        if not all(0.0 <= share < 1.0 for share in self.holdout) or sum(self.holdout) >= 1.0:
            raise ValueError(f"holdout shares must be in [0, 1) and leave something to train on, got {self.holdout}")
        return self
