"""The suspicious pairs out of many, and which images they show.

Letters: N pairs, s suspects (one text each), n their images.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from mispair.auditing.proposals import SUSPECT
from mispair.scale.vectors import PairVectors, Rows
from mispair.scale.workplace import Workplace

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ManySuspects:
    """Images and texts of these pairs are candidates for each other."""

    pairs: Rows  # (s,) ascending
    p: Floats  # (s,)
    image: Rows  # (s,) which of the n images each pair shows
    shown: Rows  # (n,) a pair that shows each image
    by_image: Rows  # (s,) positions of the pairs of image 0, of image 1, ...; the most suspicious first
    first: Rows  # (n + 1,) where those of each image begin

    @classmethod
    def among(cls, data: PairVectors, p: Floats) -> ManySuspects:
        """By the probabilities of all pairs, (N,)."""
        pairs = np.flatnonzero(p > SUSPECT)
        images, shown, image = np.unique(data.image_rows(pairs), return_index=True, return_inverse=True)
        by_image = np.lexsort((-p[pairs], image))
        first = np.concatenate([[0], np.cumsum(np.bincount(image, minlength=len(images)))])
        return cls(pairs, p[pairs], image, pairs[shown], by_image, first)

    def save(self, place: Workplace) -> None:
        place.keep(**{f"suspects-{field.name}": getattr(self, field.name) for field in fields(self)})

    @classmethod
    def load(cls, place: Workplace) -> ManySuspects:
        """As they were saved; they stay on disk."""
        return cls(*(place.array(f"suspects-{field.name}") for field in fields(cls)))

    def of_images(self, images: Rows) -> Rows:
        """The suspects that show these images, image by image."""
        begin, sizes = self.first[images], self.first[images + 1] - self.first[images]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return np.asarray(self.by_image[np.repeat(begin, sizes) + within])
