"""What should the suspicious pairs have been, out of very many? Masked partial transport, block by block, on disk.

As `mispair.auditing.proposals`, which holds all vectors and compares all suspects with all: images and texts of
suspicious pairs are free to go elsewhere, given pairs carry no mass. Here shortlists come from an inverted file, they
and the vectors of the texts lie on disk, and a block of images that lie together is rematched at a time.

Letters: N pairs, s suspects (one text each), n their images, k texts on a shortlist.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from mispair.auditing.blocks import COLUMNS, DIVISION, ROUNDS, ROWS, heaviest, solve_block
from mispair.auditing.proposals import LIGHTEST, SHORTLIST, SUSPECT, Proposals, assign
from mispair.progress import Tell
from mispair.scale.evidence import BLOCK, Measure
from mispair.scale.frame import Frame
from mispair.scale.shortlists import STEP, Texts, together
from mispair.scale.vectors import Floats32, PairVectors, Rows

Floats = NDArray[np.float64]
_STEP = 8192  # images read at a time


@dataclass(frozen=True, eq=False)
class _SuspectsAmongMany:
    pairs: Rows  # (s,) ascending
    p: Floats  # (s,)
    images: Rows  # (n,) distinct image rows
    image: Rows  # (s,) position of each pair's image in `images`
    shown: Rows  # (n,) a pair that shows each image
    by_image: Rows  # (s,) positions of the pairs of image 0, of image 1, ...; the most suspicious first
    first: Rows  # (n + 1,) where those of each image begin

    @classmethod
    def among(cls, data: PairVectors, p: Floats) -> _SuspectsAmongMany:
        pairs = np.flatnonzero(p > SUSPECT)
        images, shown, image = np.unique(data.image_rows(pairs), return_index=True, return_inverse=True)
        by_image = np.lexsort((-p[pairs], image))
        first = np.concatenate([[0], np.cumsum(np.bincount(image, minlength=len(images)))])
        return cls(pairs, p[pairs], images, image, pairs[shown], by_image, first)


def propose_among_many(
    data: PairVectors, frame: Frame, p: Floats, scores: Floats32, convincing: float, tell: Tell
) -> Proposals:
    """Proposals for the pairs that are more likely mismatched than not; p and scores are (N,).

    Args:
        convincing: suspicion up to which a proposed pair looks matched.
    """
    suspects = _SuspectsAmongMany.among(data, p)
    nothing, none = np.full(len(p), -1, np.int64), np.full(len(p), np.nan)
    if len(suspects.pairs) < 2:
        return Proposals(nothing, none, none, nothing, none, none, nothing)
    with tempfile.TemporaryDirectory(prefix="mispair-rematch-") as scratch:
        caption, caption_weight, image, image_weight = _rematch(data, frame, suspects, Path(scratch), tell)
    judge = _Judge(data, Measure(frame), scores, convincing, tell)
    result = []
    for partner, weight, flipped in ((caption, caption_weight, False), (image, image_weight, True)):
        there = np.flatnonzero(partner >= 0)
        one, other = suspects.pairs[there], suspects.pairs[partner[there]]
        good, gain = judge.accepts(one, other, flipped)
        proposed, by_weight, by_gain = nothing.copy(), none.copy(), none.copy()
        proposed[one[good]], by_gain[one[good]] = other[good], gain[good]
        by_weight[one[good]] = np.minimum(weight[there][good], 1.0)
        result.append((proposed, by_weight, by_gain))
    return Proposals(*result[0], *result[1], judge.swaps(result[0][0]))


def _rematch(
    data: PairVectors, frame: Frame, suspects: _SuspectsAmongMany, scratch: Path, tell: Tell
) -> tuple[Rows, Floats, Rows, Floats]:
    """For every suspect the suspect whose text (image) it should have, -1 where none, and the weight; each (s,)."""
    count, size = len(suspects.images), len(suspects.pairs)

    def images() -> Iterator[Tensor]:
        for at in range(0, count, _STEP):
            yield frame.unit(data.image_vectors(suspects.shown[at : at + _STEP]), 0)

    texts = Texts.write(
        (frame.unit(data.text_vectors(suspects.pairs[at : at + _STEP]), 1) for at in range(0, size, _STEP)),
        size, frame.texts.shape[1], scratch,
    )  # fmt: skip
    k = min(SHORTLIST, size)
    listed = np.memmap(scratch / "listed.i32", np.int32, "w+", shape=(count, k))
    score = np.memmap(scratch / "scores.f32", np.float32, "w+", shape=(count, k))
    at = 0
    for block in images():
        for start in range(0, len(block), STEP):
            mine = np.arange(at + start, at + min(start + STEP, len(block)))
            # A text that stands with this image already is given, not proposed.
            nearest = texts.search(block[start : start + STEP], k, partial(_elsewhere, suspects.image, mine))
            listed[mine], score[mine] = nearest[0], nearest[1].numpy()
        at += len(block)
        tell("shortlisting partners", at, count)
    score /= _spread(data, frame, suspects)
    blocks = 1 if count <= 2 * ROWS else count // ROWS
    order = np.arange(count) if blocks == 1 else together(texts, images, count, ROWS)
    return _transport(suspects, listed, score, order, blocks, tell)


def _elsewhere(image_of: Rows, images: Rows, texts: Rows) -> NDArray[np.bool_]:
    """Which texts (b, c) stand with another image than those (b,) they are asked for."""
    return np.asarray(image_of[texts] != images[:, None])


def _spread(data: PairVectors, frame: Frame, suspects: _SuspectsAmongMany) -> float:
    """Standard deviation of a random cell: one entropy then suits every model."""
    rng = np.random.default_rng(0)
    one, other = (suspects.pairs[rng.integers(0, len(suspects.pairs), 2000)] for _ in range(2))
    return float(Measure(frame).score(data.image_vectors(one), data.text_vectors(other)).std()) or 1.0


def _transport(
    suspects: _SuspectsAmongMany, listed: NDArray[np.int32], score: Floats32, order: Rows, blocks: int, tell: Tell
) -> tuple[Rows, Floats, Rows, Floats]:
    count, size = len(suspects.images), len(suspects.pairs)
    best, total = _fits(listed, score, size)
    mass = np.bincount(suspects.image, suspects.p, count).astype(np.float64)
    most = COLUMNS * -(-size // count) if blocks > 1 else size
    issues = suspects.p > 0.5
    caption, caption_weight = np.full(size, -1, np.int64), np.full(size, np.nan)
    image, image_weight = np.full(size, -1, np.int64), np.zeros(size)
    for block in range(blocks):
        mine = np.sort(order[count * block // blocks : count * (block + 1) // blocks])
        there = listed[mine]
        r, place = np.nonzero(there >= 0)
        cols, fits = there[r, place].astype(np.int64), score[mine[r], place].astype(np.float64)
        if len(r):
            texts, c = np.unique(cols, return_inverse=True)
            share = np.bincount(c, np.exp((fits - best[cols]) / DIVISION)) / total[texts]
            allotted = (suspects.p[texts] * share)[c]
            kept = heaviest(np.arange(len(r)), cols, allotted, most)
            r, cols, fits, allotted = r[kept], cols[kept], fits[kept], allotted[kept]
            rows, r_local = np.unique(r, return_inverse=True)
            texts, first, c = np.unique(cols, return_index=True, return_inverse=True)
            plan = solve_block(r_local, c, fits, mass[mine[rows]], allotted[first], ROUNDS[blocks > 1])
            weight = plan[r_local, c]
            pairs = np.concatenate(
                [suspects.by_image[suspects.first[i] : suspects.first[i + 1]] for i in mine.tolist()]
            )
            chosen, by = assign(np.searchsorted(mine, suspects.image[pairs]), r, cols, weight, issues[pairs])
            caption[pairs], caption_weight[pairs] = chosen, by
            _best_images(image, image_weight, cols, mine[r], weight)
        tell("rematching", block + 1, blocks)
    image[~issues] = -1
    holder = suspects.by_image[suspects.first[:-1]]  # the most suspicious pair of each image
    return caption, caption_weight, np.where(image >= 0, holder[image], -1), image_weight


def _fits(listed: NDArray[np.int32], score: Floats32, size: int) -> tuple[Floats, Floats]:
    """Of every text the score with the image it fits best, and how well it fits all together: a text divides its mass
    among the blocks by how it fits their images."""
    best, total = np.full(size, -np.inf), np.zeros(size)
    for sweep in (0, 1):
        for at in range(0, len(listed), _STEP):
            part = listed[at : at + _STEP].ravel()
            there = part >= 0
            cols, fits = part[there], score[at : at + _STEP].ravel()[there].astype(np.float64)
            if sweep == 0:
                np.maximum.at(best, cols, fits)
            else:
                np.add.at(total, cols, np.exp((fits - best[cols]) / DIVISION))
    return best, total


def _best_images(image: Rows, weight_of: Floats, cols: Rows, images: Rows, weight: Floats) -> None:
    """Remember for every text the image that the heaviest cell so far leads to."""
    heavy = np.flatnonzero(weight > np.maximum(LIGHTEST, weight_of[cols]))
    heavy = heavy[np.argsort(weight[heavy], kind="stable")]  # of several, the last one written is the heaviest
    image[cols[heavy]], weight_of[cols[heavy]] = images[heavy], weight[heavy]


@dataclass(frozen=True, eq=False)
class _Judge:
    """Whether a proposed pair looks matched and scores above the given one."""

    data: PairVectors
    measure: Measure
    scores: Floats32  # (N,) of the given pairs
    convincing: float
    tell: Tell

    def accepts(self, one: Rows, other: Rows, flipped: bool) -> tuple[NDArray[np.bool_], Floats]:
        """Of pairs `one` that would get the text (flipped: the image) of pairs `other`: whether, and the gain."""
        good, score = self._cells(*((other, one) if flipped else (one, other)))
        gain = (score - self.scores[one]).astype(np.float64)
        return good & (gain > 0), gain

    def swaps(self, caption_pair: Rows) -> Rows:
        """The pair with which exchanging captions mends both: the way back must look matched too."""
        one = np.flatnonzero(caption_pair >= 0)
        other = caption_pair[one]
        good, back = self._cells(other, one)
        mends = good & (back > self.scores[other])
        swap = np.full(len(caption_pair), -1, np.int64)
        for a, b in zip(one[mends].tolist(), other[mends].tolist(), strict=True):
            if swap[a] < 0 and swap[b] < 0 and a != b:
                swap[a], swap[b] = b, a
        return swap

    def _cells(self, image_pairs: Rows, text_pairs: Rows) -> tuple[NDArray[np.bool_], Floats32]:
        good, score = np.empty(len(image_pairs), bool), np.empty(len(image_pairs), np.float32)
        for at in range(0, len(image_pairs), BLOCK):
            part = slice(at, at + BLOCK)
            one, other = image_pairs[part], text_pairs[part]
            vectors = self.data.image_vectors(one), self.data.text_vectors(other)
            evidence, score[part] = self.measure.cells(other, self.data.image_rows(one), *vectors)
            good[part] = self.measure.frame.near.suspicion(evidence) <= self.convincing
            self.tell("judging proposals", min(part.stop, len(image_pairs)), len(image_pairs))
        return good, score
