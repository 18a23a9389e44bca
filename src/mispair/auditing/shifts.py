"""Are captions off by some rows? A stretch of rows whose captions fit the images k rows further up better.

In a sorted file the neighbours of a row are alike, so that a caption off by a row still fits well: what tells is not
whether a caption fits its image, but which of the two images it fits better. In a stretch that is not off the given one
wins at least as often; how often the other wins is held against a coin, and all stretches and offsets were tried. Rows
whose two images are one tell nothing, and the captions of one image are counted as one coin.

Letters: N pairs in the order of the data, k an offset in rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mispair.auditing.facts import SHIFTED, Damage
from mispair.counted import counted

Rows = NDArray[np.int64]
PairScores = Callable[[Rows, Rows], NDArray[np.float32]]  # of the images of some pairs with the texts of others

FURTHEST = 100  # rows either way
_FEWEST = 20  # rows of a stretch that count as one
_SCREENED = 5_000
_GAIN = 0.1  # share of a stretch by which rows that fit the other caption better outnumber the others, twice over
_CHANCE = 1e-3  # of finding a stretch, at any offset, where there is none
ENDS = 5  # rows by which both ends of a stretch together may be mistaken


@dataclass(frozen=True, slots=True)
class Shift:
    """The caption that fits row r stands at row r + offset; those of rows `start` to `stop - 1` are another row's."""

    offset: int
    start: int
    stop: int
    better: int  # captions that fit the image `offset` rows further up better than the given one
    worse: int

    def mismatched(self, image_rows: Rows, captions: Sequence[str | int]) -> NDArray[np.float64]:
        """(N,): 0, or the probability that the caption given is another image's.

        Inside the stretch the caption of row r belongs to row r - offset: to the same image where that has several
        captions, and equal captions are as good as exchanged for one another.
        """
        p = np.zeros(len(image_rows))
        inside = np.arange(self.start, self.stop)
        own = inside + self.offset  # where the caption that fits stands, unless it was pushed off the table
        same = [
            0 <= k < len(p) and captions[row] == captions[k]
            for row, k in zip(inside.tolist(), own.tolist(), strict=True)
        ]
        off = inside[(image_rows[inside - self.offset] != image_rows[inside]) & ~np.array(same, bool)]
        p[off] = 1 - ENDS / (self.stop - self.start)
        return p

    def describe(self, count: int) -> Damage:
        """What to say of it, where the data has `count` pairs."""
        k, back = self.offset, "up" if self.offset > 0 else "down"
        end = "on" if self.stop + abs(k) >= count - FURTHEST else f"to row {self.stop - 1:,}"
        by = counted(abs(k), "row")
        return Damage(
            kind=SHIFTED,
            count=self.stop - self.start,
            evidence=(
                f"From row {self.start:,} {end}, the caption that fits stands {by}"
                f" {'further down' if k > 0 else 'further up'}: {counted(self.better, 'caption fits', 'captions fit')}"
                f" the image {by} {'up' if k > 0 else 'down'} better than the given one, {self.worse:,} less well."
            ),
            remedy=f"Move the captions from row {self.start:,} on {back} by {by}, then audit again.",
            pairs=tuple(range(self.start, min(self.stop, self.start + 50))),
        )


def find_shift(score: PairScores, image_rows: Rows) -> Shift | None:
    """The longest and clearest shift among the pairs with these images, (N,); None where chance explains it."""
    count = len(image_rows)
    every = np.arange(count)
    given = score(every, every)
    offsets = [sign * step for step in range(1, min(FURTHEST, count // 2) + 1) for sign in (1, -1)]
    # Every offset on some of the rows, the most promising ones on all of them.
    some = np.unique(np.linspace(0, count - 1, min(count, _SCREENED)).astype(np.int64))
    best = sorted((_stretch(score, image_rows, given, k, some) for k in offsets), reverse=True)[:3]
    _, k, start, stop = max(_stretch(score, image_rows, given, stretch[1], every) for stretch in best)
    inside, wins = _wins(score, image_rows, given, k, np.arange(start, stop))
    better, worse = int((wins > 0).sum()), int((wins < 0).sum())
    if stop - start < _FEWEST or better - worse < 2 * _GAIN * len(inside):
        return None
    coins = len(np.unique(image_rows[inside])) / len(inside)
    if coins * _log_chance(better, worse) + math.log(count * len(offsets)) > math.log(_CHANCE):
        return None
    return Shift(k, start, stop, better, worse)


def _stretch(
    score: PairScores, image_rows: Rows, given: NDArray[np.float32], k: int, rows: Rows
) -> tuple[float, int, int, int]:
    """How much the best stretch of `rows` gains at offset k: gain, k, first row, row after the last."""
    there, wins = _wins(score, image_rows, given, k, rows)
    if not len(there):
        return 0.0, k, 0, 0
    total, first, last = _best_stretch(wins - _GAIN)
    return total, k, int(there[first]), int(there[last]) + 1


def _wins(
    score: PairScores, image_rows: Rows, given: NDArray[np.float32], k: int, rows: Rows
) -> tuple[Rows, NDArray[np.float64]]:
    """Of `rows` those whose image k rows further up is another one, and for each of them 1 where it fits better.

    -1 where it fits less well; where neither fits, a coin.
    """
    there = rows[(rows - k >= 0) & (rows - k < len(image_rows))]
    there = there[image_rows[there - k] != image_rows[there]]
    shifted = score(there - k, there)
    return there, np.sign(shifted.astype(np.float64) - given[there])


def _log_chance(better: int, worse: int) -> float:
    """Bound on the logarithm of the probability that a fair coin wins so often (Chernoff)."""
    total = better + worse
    if better <= worse:
        return 0.0
    entropy = -sum(part / total * math.log(part / total) for part in (better, worse) if part)
    return -total * (math.log(2) - entropy)


def _best_stretch(gain: NDArray[np.float64]) -> tuple[float, int, int]:
    """The stretch with the largest sum: sum, first, last."""
    before = np.concatenate([[0.0], np.cumsum(gain)])
    lowest = np.minimum.accumulate(before[:-1])
    last = int(np.argmax(before[1:] - lowest))
    first = int(np.argmin(before[: last + 1]))
    return float(before[last + 1] - before[first]), first, last
