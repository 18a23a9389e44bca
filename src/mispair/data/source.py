"""Source: one split as it lies on disk, before noise, words and batches. Every reader ends here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mispair.data.features import FeatureStore
from mispair.data.picture_store import Pictures

FEWEST = 20  # pairs below which matched and mismatched ones cannot be told apart


def of_split(split: str) -> str:
    """How a sentence about a split begins; data without splits is spoken of as it is."""
    return "" if split == "all" else f"{split}: "


@dataclass(frozen=True)
class Finding:
    """Something a person should look at. It does not make the data unusable."""

    kind: str  # a short fixed name: "empty captions"
    split: str
    count: int
    text: str  # one sentence: what, where, what to do
    rows: tuple[int, ...] = ()  # the first rows, lines or pairs concerned, as the text counts them
    left_out: bool = False  # whether the pairs concerned are not in the source; refused unless `missing: skip`

    @property
    def note(self) -> str:
        """The same for somebody who skips what is missing: that remedy was taken."""
        return f"left out: {self.text.rpartition('; ')[0]}" if self.left_out else self.text


@dataclass(frozen=True, eq=False)
class Source:
    """I distinct images, M texts in order, and which image each text belongs to."""

    name: str
    split: str
    images: FeatureStore | None  # (I, R, F); None where the data came without
    image_of_text: NDArray[np.int64]  # (M,)
    captions: Sequence[str] | None = None  # (M,)
    text_features: FeatureStore | None = None  # (M, L, F')
    image_ids: Sequence[str] | None = None  # (I,)
    text_ids: Sequence[str] | None = None  # (M,)
    notes: tuple[str, ...] = ()  # what was recognised or assumed, one sentence each
    findings: tuple[Finding, ...] = ()
    lines: NDArray[np.int64] | None = None  # (M,) line or row of the file each text stands in; None: M + 1
    world: Any = field(default=None, repr=False)  # the generated scenes behind it, when there are some
    pictures: Pictures | None = None  # (I,) read when asked for
    pictures_hash: str | None = None  # of the files of all pictures, where they were read
    positions: NDArray[np.int64] | None = None  # (M,) place of each text among those of all splits
    weights: NDArray[np.float32] | None = None  # (M,) how much each pair counts in training; None: all alike
    no_picture: Mapping[str, str] = field(default_factory=dict)  # images left out since theirs cannot be had, and why
    listed: int = 0  # texts of all splits together, those left out included; 0 where nobody counted

    @property
    def image_count(self) -> int:
        if self.images is not None:
            return len(self.images)
        return int(self.image_of_text.max()) + 1

    @property
    def captions_per_image(self) -> int | None:
        """How many texts each image has; None when it varies."""
        counts = np.bincount(self.image_of_text, minlength=self.image_count)
        return int(counts[0]) if len(counts) and (counts == counts[0]).all() else None

    def line_of(self, text_row: int) -> int:
        """Where a person finds text `text_row`, counted from 1."""
        return text_row + 1 if self.lines is None else int(self.lines[text_row])

    def first(self, limit: int) -> Source:
        """The first `limit` images and their texts."""
        if limit >= self.image_count:
            return self
        note = f"only the first {limit:,} images of {self.split} are used (limit)"
        return replace(self.images_between(0, limit), notes=(*self.notes, note))

    def images_between(self, first: int, last: int) -> Source:
        """The images from row `first` to before row `last`, and their texts in order."""
        part = self.of_images(np.arange(first, last))
        return replace(part, no_picture=self.no_picture if first == 0 else {})  # no row: the first part counts them

    def of_images(self, images: NDArray[np.int64]) -> Source:
        """The images in these rows, and their texts in order."""
        place = np.full(self.image_count, -1)
        place[images] = np.arange(len(images))
        texts = np.flatnonzero(place[self.image_of_text] >= 0)
        listed: list[int] = texts.tolist()
        return replace(
            self,
            images=None if self.images is None else self.images.subset(images),
            image_of_text=place[self.image_of_text[texts]],
            captions=None if self.captions is None else [self.captions[k] for k in listed],
            text_features=None if self.text_features is None else self.text_features.subset(texts),
            image_ids=None if self.image_ids is None else [self.image_ids[k] for k in images.tolist()],
            text_ids=None if self.text_ids is None else [self.text_ids[k] for k in listed],
            lines=None if self.lines is None else self.lines[texts],
            positions=None if self.positions is None else self.positions[texts],
            weights=None if self.weights is None else self.weights[texts],
            pictures=None if self.pictures is None else self.pictures.subset(images),
        )
