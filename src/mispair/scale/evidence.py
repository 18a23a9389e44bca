"""What is measured of a pair: its score, its ranks among the landmarks, and whether its neighbours there agree.

Everything comes from four products of a block of pairs with the landmarks. Blocks are cut at fixed row numbers of the
whole set, so that the very same products are made whoever makes them.

Letters: b pairs of a block, L landmarks, F = 5 kinds of evidence, k nearest landmarks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mispair.scale.frame import Frame
from mispair.scale.hashing import uniform
from mispair.scale.vectors import Floats32, PairVectors, Rows

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

BLOCK = 512  # pairs; shards are cut between blocks
REPAIRED = 1 << 17  # re-paired pairs of the whole set, about
_NEAREST, _SPARE = 10, 5  # a few more than wanted: the item itself may be among them, several times if it is repeated
_ITSELF = 1 - 1e-5  # cosine from which a neighbour is the same item again, and no witness
_TIE = 1e-6
_GROUPS = 16


@dataclass(frozen=True, eq=False)
class Measured:
    """Of b given pairs, and of those of them that were re-paired."""

    evidence: Floats  # (b, F), larger is more suspicious
    score: Floats32  # (b,)
    caption_above: Counts  # (b,) landmark texts that fit the image at least as well
    image_above: Counts  # (b,) landmark images that fit the text at least as well
    repaired: Floats  # (z, F)


def blocks_of(pairs: int, shard: int = 1, of: int = 1) -> list[tuple[int, int]]:
    """First row and row after the last of every block of a shard, `shard` counted from 1."""
    count = -(-pairs // BLOCK)
    first, last = count * (shard - 1) // of, count * shard // of
    return [(k * BLOCK, min((k + 1) * BLOCK, pairs)) for k in range(first, last)]


class Measure:
    """Measures blocks against a frame. It keeps its products, so that memory is asked for once."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        size = len(frame.landmarks)
        self._products = [torch.empty(BLOCK, size) for _ in range(4)]
        self._columns = frame.images.T.contiguous(), frame.texts.T.contiguous()
        self._order = np.argsort(frame.landmark_images, kind="stable")
        self._sorted = frame.landmark_images[self._order]
        self._of_landmarks: tuple[Tensor, Tensor, tuple[Tensor, Tensor]] | None = None

    def blocks(self, data: PairVectors, ranges: list[tuple[int, int]]) -> Iterator[tuple[Rows, Measured]]:
        """Every block with its rows."""
        for start, stop in ranges:
            rows = np.arange(start, stop)
            yield (
                rows,
                self.of(rows, data.image_rows(rows), data.image_vectors(rows), data.text_vectors(rows)),
            )

    def of(
        self, rows: Rows, image_rows: Rows, images: Floats32, texts: Floats32, *, repair: float | None = None
    ) -> Measured:
        """Measure pairs by the rows of their texts and of their images, and their vectors, (b, d) each.

        `repair`: share of them that is re-paired; None: so many that the whole set gives `REPAIRED`.
        """
        share = min(1.0, REPAIRED / self.frame.pairs) if repair is None else repair
        parts = [
            self._block(rows[part], image_rows[part], images[part], texts[part], share)
            for part in (slice(start, start + BLOCK) for start in range(0, len(rows), BLOCK))
        ]
        return parts[0] if len(parts) == 1 else _joined(parts)

    def score(self, images: Floats32, texts: Floats32) -> Floats32:
        """(b,) cosines around the means."""
        scores: Floats32 = (self.frame.unit(images, 0) * self.frame.unit(texts, 1)).sum(1).numpy()
        return scores

    def cells(
        self, rows: Rows, image_rows: Rows, images: Floats32, texts: Floats32, least: Floats32
    ) -> tuple[Floats32, Rows, Floats]:
        """Scores of at most `BLOCK` cells, which of them score above `least` (b,), and the evidence of score and ranks
        of those, (., NEAR). An image, or a text, that is there several times is compared with the landmarks once."""
        a, b = self.frame.unit(images, 0), self.frame.unit(texts, 1)
        score = (a * b).sum(1)
        better = np.flatnonzero(score.numpy() > least)
        it = self._once(a, image_rows, better, 1)
        ti = self._once(b, rows, better, 0)
        evidence, _ = self._near(rows[better], image_rows[better], it, ti, score[torch.from_numpy(better)])
        return score.numpy(), better, evidence

    def _once(self, vectors: Tensor, items: Rows, wanted: Rows, side: int) -> Tensor:
        """Products of the wanted of the vectors (b, d) with the landmarks, (., L); `items` (b,) says which are one."""
        distinct, first, place = np.unique(items[wanted], return_index=True, return_inverse=True)
        product = self._products[side][: len(distinct)]
        torch.mm(vectors[torch.from_numpy(wanted[first])], self._columns[side], out=product)
        return product[torch.from_numpy(place)]

    def _near(
        self, rows: Rows, image_rows: Rows, it: Tensor, ti: Tensor, score: Tensor
    ) -> tuple[Floats, tuple[Counts, Counts]]:
        """Evidence of score and ranks, (b, NEAR), and how many landmarks are above. Changes the products."""
        frame, count = self.frame, len(rows)
        # The pair itself is no rival of its own, nor is its image with another caption.
        at = np.searchsorted(frame.landmarks, rows).clip(max=len(frame.landmarks) - 1)
        own = np.flatnonzero(frame.landmarks[at] == rows)
        it[torch.from_numpy(own), torch.from_numpy(at[own])] = -torch.inf
        where, columns = self._same_image(image_rows)
        ti[torch.from_numpy(where), torch.from_numpy(columns)] = -torch.inf
        others_text = len(frame.landmarks) - np.isin(np.arange(count), own)
        others_image = len(frame.landmarks) - np.bincount(where, minlength=count)
        above = _above(it, score), _above(ti, score)
        shares = _log_share(above[0], others_text), _log_share(above[1], others_image)
        return np.column_stack([-score.double().numpy(), *shares]), above

    def _block(self, rows: Rows, image_rows: Rows, images: Floats32, texts: Floats32, share: float) -> Measured:
        frame, count = self.frame, len(rows)
        a, b = frame.unit(images, 0), frame.unit(texts, 1)
        ii, it, ti, tt = (
            torch.mm(one, columns, out=product[:count])
            for one, columns, product in zip(
                (a, a, b, b), (*self._columns, *self._columns), self._products, strict=True
            )
        )
        score = (a * b).sum(1)
        near_images, near_texts = _nearest(ii), _nearest(tt)
        repaired = self._repaired(rows, image_rows, ii, it, near_images, share)
        unlike = (
            _disagreement(near_images[0], tt.gather(1, near_images[1])),
            _disagreement(near_texts[0], ii.gather(1, near_texts[1])),
        )
        near, above = self._near(rows, image_rows, it, ti, score)
        return Measured(np.column_stack([near, *unlike]), score.numpy().copy(), above[0], above[1], repaired)

    def _same_image(self, image_rows: Rows) -> tuple[Rows, Rows]:
        """Cells (pair of the block, landmark) that show one image."""
        first, last = np.searchsorted(self._sorted, image_rows), np.searchsorted(self._sorted, image_rows, "right")
        where = np.repeat(np.arange(len(image_rows)), last - first)
        start = np.repeat(first - np.concatenate([[0], np.cumsum(last - first)[:-1]]), last - first)
        return where, self._order[start + np.arange(len(where))]

    def _repaired(
        self, rows: Rows, image_rows: Rows, ii: Tensor, it: Tensor, near: tuple[Tensor, Tensor], share: float
    ) -> Floats:
        """(z, F): the images of some of the pairs with the text of a landmark, both named by hashes of the row."""
        frame, size = self.frame, len(self.frame.landmarks)
        taken = np.flatnonzero(uniform(rows, 1) < share)
        partner = (uniform(rows[taken], 2) * size).astype(np.int64)
        for _ in range(8):  # a landmark with the very same image is no wrong partner: the next one
            same = frame.landmark_images[partner] == image_rows[taken]
            partner[same] = (partner[same] + 1) % size
        good = frame.landmark_images[partner] != image_rows[taken]
        taken, partner = taken[good], partner[good]
        if len(taken) == 0:
            return np.empty((0, 5))
        if self._of_landmarks is None:
            texts = frame.texts @ self._columns[1]
            self._of_landmarks = frame.texts @ self._columns[0], texts, _nearest(texts)
        images_of, texts_of, near_of = self._of_landmarks
        r, p = torch.from_numpy(taken), torch.from_numpy(partner)
        score = it[r, p]
        where, _ = self._same_image(image_rows[taken])
        same_image = np.bincount(where, minlength=len(taken))
        evidence = np.empty((len(taken), 5))
        evidence[:, 0] = -score.numpy()
        above = _above(it if len(r) == len(it) else it[r], score) - 1  # itself
        evidence[:, 1] = _log_share(above, np.full(len(taken), size - 1))
        evidence[:, 2] = _log_share((_above(images_of[p], score) - same_image).clip(min=0), size - same_image)
        evidence[:, 3] = _disagreement(near[0][r], texts_of[p.unsqueeze(1), near[1][r]])
        evidence[:, 4] = _disagreement(near_of[0][p], ii[r.unsqueeze(1), near_of[1][p]])
        return evidence


def _joined(parts: list[Measured]) -> Measured:
    names = ("evidence", "score", "caption_above", "image_above", "repaired")
    return Measured(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _above(product: Tensor, score: Tensor) -> Counts:
    """(b,): how many of a row's products are at least the score; ties count against it."""
    return np.asarray(np.count_nonzero((product >= (score - _TIE).unsqueeze(1)).numpy(), axis=1), np.int64)


def _log_share(above: Counts, others: NDArray[np.int64]) -> Floats:
    """The logarithm of the share that fits better: first or tenth matters, 991st or 1000th does not."""
    return np.log((above + 0.5) / (others + 0.5))


def _nearest(product: Tensor) -> tuple[Tensor, Tensor]:
    """The largest columns of every row, best first: values and indices (b, k). Where there are many columns, the
    largest lie in the groups with the largest maxima, so that most columns are looked at once."""
    count, size = product.shape
    k = min(_NEAREST + _SPARE, size)
    groups = size // _GROUPS
    if size % _GROUPS or groups <= 2 * k:
        return torch.topk(product, k, 1)
    best = product.view(count, _GROUPS, groups).amax(1).topk(k, 1, sorted=False).indices
    columns = (best.unsqueeze(1) + groups * torch.arange(_GROUPS).view(1, -1, 1)).flatten(1)
    values, place = product.gather(1, columns).topk(k, 1)
    return values, columns.gather(1, place)


def _disagreement(closeness: Tensor, likeness: Tensor) -> Floats:
    """(b,): how unlike the other side of a pair is to those of its nearest landmarks; how near and how like, (b, k)."""
    # The very same item, or the other side of the very same pair, would vouch for itself.
    counts = (closeness < _ITSELF) & (likeness < _ITSELF)
    counts &= counts.cumsum(1) <= _NEAREST
    return -((likeness * counts).sum(1) / counts.sum(1).clamp(min=1)).double().numpy()
