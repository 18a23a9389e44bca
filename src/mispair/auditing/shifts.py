"""Are captions off by some rows? A stretch of rows whose images match the captions k rows further on instead.

Letters: N pairs in the order of the data, k an offset in rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from mispair.auditing.facts import Damage
from mispair.auditing.space import Space
from mispair.counted import counted

Rows = NDArray[np.int64]

FURTHEST = 100  # rows either way
_FEWEST = 20  # rows of a stretch that count as one
_SCREENED = 5_000
_GAIN = 0.3  # share of the rows of a stretch that must match k rows on and not as given


def find_shift(
    images: Tensor, texts: Tensor, image_rows: Rows, text_rows: Rows, repaired: tuple[Rows, Rows]
) -> Damage | None:
    """images (I, d), texts (M, d): vectors; rows (N,) of the given pairs, and rows of re-paired ones."""
    count = len(image_rows)
    space = Space(images, texts)
    # A random cell scores above this once in a hundred times.
    level = float(np.quantile(space.score(*repaired), 0.99))
    given = space.score(image_rows, text_rows) > level
    offsets = [sign * step for step in range(1, min(FURTHEST, count // 2) + 1) for sign in (1, -1)]
    # Every offset on some of the rows, the most promising ones on all of them.
    some = np.unique(np.linspace(0, count - 1, min(count, _SCREENED)).astype(np.int64))
    best = sorted((_stretch(space, image_rows, text_rows, given, level, k, some) for k in offsets), reverse=True)[:3]
    every = np.arange(count)
    _, k, start, stop = max(_stretch(space, image_rows, text_rows, given, level, stretch[1], every) for stretch in best)
    inside = np.arange(start, stop)
    matches = space.score(image_rows[inside], text_rows[inside + k]) > level
    now, then = float(given[inside].mean()), float(matches.mean())
    if len(inside) < _FEWEST or then - now < _GAIN:
        return None
    wrong = inside[matches & ~given[inside]]
    end = "on" if stop + max(k, 0) >= count - FURTHEST else f"to row {stop - 1:,}"
    by = counted(abs(k), "row")
    return Damage(
        kind="shifted captions",
        count=len(inside),
        evidence=(
            f"From row {start:,} {end}, the caption that fits stands {by} {'further down' if k > 0 else 'further up'}:"
            f" {then:.0%} of the rows match it, {now:.0%} the given one."
        ),
        remedy=f"Move the captions from row {start:,} on {'up' if k > 0 else 'down'} by {by}, then audit again.",
        pairs=tuple(wrong[:50].tolist()),
    )


def _stretch(
    space: Space, image_rows: Rows, text_rows: Rows, given: NDArray[np.bool_], level: float, k: int, rows: Rows
) -> tuple[float, int, int, int]:
    """How much the best stretch of `rows` gains at offset k: gain, k, first row, row after the last."""
    there = rows[(rows + k >= 0) & (rows + k < len(image_rows))]
    shifted = space.score(image_rows[there], text_rows[there + k]) > level
    total, first, last = _best_stretch(shifted.astype(np.float64) - given[there] - _GAIN / 2)
    return total, k, int(there[first]), int(there[last]) + 1


def _best_stretch(gain: NDArray[np.float64]) -> tuple[float, int, int]:
    """The stretch with the largest sum: sum, first, last."""
    before = np.concatenate([[0.0], np.cumsum(gain)])
    lowest = np.minimum.accumulate(before[:-1])
    last = int(np.argmax(before[1:] - lowest))
    first = int(np.argmin(before[: last + 1]))
    return float(before[last + 1] - before[first]), first, last
