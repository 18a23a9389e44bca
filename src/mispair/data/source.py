"""Source: one split as it lies on disk, before noise, words and batches. Every reader ends here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mispair.data.features import FeatureStore


@dataclass(frozen=True)
class Finding:
    """Something a person should look at. It does not make the data unusable."""

    kind: str  # a short fixed name: "empty captions"
    split: str
    count: int
    text: str  # one sentence: what, where, what to do
    rows: tuple[int, ...] = ()  # the first rows, lines or pairs concerned, as the text counts them


@dataclass(frozen=True, eq=False)
class Source:
    """I distinct images, M texts in order, and which image each text belongs to."""

    name: str
    split: str
    images: FeatureStore | None  # (I, R, F); None when a table came without features
    image_of_text: NDArray[np.int64]  # (M,)
    captions: Sequence[str] | None = None  # (M,)
    text_features: FeatureStore | None = None  # (M, L, F')
    image_ids: Sequence[str] | None = None  # (I,)
    text_ids: Sequence[str] | None = None  # (M,)
    notes: tuple[str, ...] = ()  # what was recognised or assumed, one sentence each
    findings: tuple[Finding, ...] = ()
    lines: NDArray[np.int64] | None = None  # (M,) line or row of the file each text stands in; None: M + 1
    world: Any = field(default=None, repr=False)  # the generated scenes behind it, when there are some

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
        texts = np.flatnonzero(self.image_of_text < limit)
        listed: list[int] = texts.tolist()
        return Source(
            self.name,
            self.split,
            None if self.images is None else self.images.subset(np.arange(limit)),
            self.image_of_text[texts],
            None if self.captions is None else [self.captions[k] for k in listed],
            None if self.text_features is None else self.text_features.subset(texts),
            None if self.image_ids is None else self.image_ids[:limit],
            None if self.text_ids is None else [self.text_ids[k] for k in listed],
            (*self.notes, f"only the first {limit:,} images of {self.split} are used (limit)"),
            self.findings,
            None if self.lines is None else self.lines[texts],
            self.world,
        )
