"""Do neighbours agree? Images like this one should have captions like this one, and the other way round.

Needs no common space: only which images are alike, and which captions.
Letters: I images, M texts, L landmarks (some of the pairs), k nearest of them, d width, C cells.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mispair.auditing.similarity import Rows, best_partners
from mispair.progress import Progress

_LANDMARKS = 4096
_NEAREST = 10
_ITSELF = 1 - 1e-5  # cosine from which a neighbour is the same item again, and no witness
_CHUNK = 1 << 24  # numbers gathered at a time


class Neighbours:
    """Unit vectors of both sides, (I, d) and (M, d'), and which of them are paired."""

    def __init__(
        self, images: Tensor, texts: Tensor, image_rows: Rows, text_rows: Rows, progress: Progress | None = None
    ) -> None:
        self.images, self.texts = images, texts
        landmarks = np.sort(np.random.default_rng(0).permutation(len(image_rows))[:_LANDMARKS])
        self.landmark_images = images[torch.from_numpy(image_rows[landmarks])]
        self.landmark_texts = texts[torch.from_numpy(text_rows[landmarks])]
        # A few more than wanted: the item itself may be among them, several times if it is repeated.
        self.near_images = best_partners(images, self.landmark_images, _NEAREST + 5, progress)
        self.near_texts = best_partners(texts, self.landmark_texts, _NEAREST + 5, progress)

    def disagreement(self, rows: Rows, cols: Rows) -> NDArray[np.float64]:
        """(C, 2), larger is more suspicious: captions of like images, and images of like captions, are unlike."""
        unlike = np.empty((len(rows), 2))
        step = max(1, _CHUNK // (self.near_images[1].shape[1] * max(self.images.shape[1], self.texts.shape[1])))
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            r, c = torch.from_numpy(rows[part]), torch.from_numpy(cols[part])
            unlike[part, 0] = -_mean_likeness(self.near_images, r, self.landmark_texts, self.texts[c])
            unlike[part, 1] = -_mean_likeness(self.near_texts, c, self.landmark_images, self.images[r])
        return unlike


def _mean_likeness(
    near: tuple[Tensor, Tensor], items: Tensor, landmarks: Tensor, partners: Tensor
) -> NDArray[np.float64]:
    """Mean cosine of each partner with the other sides of the item's neighbours, the k nearest that are not itself."""
    closeness, witnesses = near[0][items], near[1][items]
    likeness = torch.einsum("ckd,cd->ck", landmarks[witnesses], partners)
    counts = closeness < _ITSELF
    # The other side of the very same pair (or of its copy) would vouch for itself.
    counts &= likeness < _ITSELF
    counts &= counts.cumsum(1) <= _NEAREST
    return ((likeness * counts).sum(1) / counts.sum(1).clamp(min=1)).double().numpy()
