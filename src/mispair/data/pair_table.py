"""PairTable: which image is shown with which text, and, apart from that, which one belongs to it.

Letters: N pairs, I images, M texts. Rows of the table are pair ids: the only key for per-pair arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class PairTruth:
    """What was right before the noise. Evaluation and audit read it; a training batch cannot carry it."""

    image_rows: NDArray[np.int64]  # (N,) the image the text of each pair belongs to
    mismatched: NDArray[np.bool_]  # (N,) whether the pair shows another one


@dataclass(frozen=True, eq=False)
class PairTable:
    """N given pairs, as training sees them (after noise)."""

    image_rows: NDArray[np.int64]  # (N,) row of the image store shown with each pair
    text_rows: NDArray[np.int64]  # (N,) row of the text store shown with each pair
    captions: Sequence[str] | None = None  # (M,) by text row; None when the second side has no words
    image_ids: Sequence[str] | None = None  # (I,) by image row
    text_ids: Sequence[str] | None = None  # (M,) by text row
    truth: PairTruth | None = None
    weights: NDArray[np.float32] | None = None  # (N,) how much each pair counts in training; None: all alike
    known: NDArray[np.int8] | None = (
        None  # (N,) what people said: 1 mismatched, 0 matched, -1 nothing; None: of no pair
    )

    def __post_init__(self) -> None:
        assert self.image_rows.shape == self.text_rows.shape == (len(self),), "one image and one text per pair"

    def __len__(self) -> int:
        return len(self.image_rows)

    @property
    def pair_ids(self) -> NDArray[np.int64]:
        """(N,) 0..N-1."""
        return np.arange(len(self))

    def showing(self, image_rows: NDArray[np.int64], text_rows: NDArray[np.int64]) -> PairTable:
        """The same texts and images paired otherwise; what this table shows now is recorded as the truth."""
        home = np.full(int(max(self.text_rows.max(), text_rows.max())) + 1, -1, np.int64)
        home[self.text_rows] = self.image_rows if self.truth is None else self.truth.image_rows
        belongs = home[text_rows]
        truth = PairTruth(belongs, image_rows != belongs)
        return replace(self, image_rows=image_rows, text_rows=text_rows, truth=truth)

    def truly_matched(self) -> PairTable:
        """The pairs that show what belongs together: the yardstick of a training that knows the truth."""
        assert self.truth is not None, "nobody recorded which pairs were mismatched"
        kept = np.flatnonzero(~self.truth.mismatched)
        truth = PairTruth(self.truth.image_rows[kept], self.truth.mismatched[kept])
        return replace(self._only(kept), truth=truth)

    def without_truth(self, pairs: NDArray[np.int64]) -> PairTable:
        """The pairs `pairs` (n,) alone, in that order; of what was right before any noise nothing is left."""
        return replace(self._only(pairs), truth=None)

    def _only(self, pairs: NDArray[np.int64]) -> PairTable:
        return replace(
            self,
            image_rows=self.image_rows[pairs],
            text_rows=self.text_rows[pairs],
            weights=None if self.weights is None else self.weights[pairs],
            known=None if self.known is None else self.known[pairs],
        )
