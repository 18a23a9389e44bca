"""Are captions off by some rows? A stretch of rows whose images match the captions k rows further on instead.

Letters: N pairs in the order of the data, k an offset in rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mispair.audit.scan import Scores, Space
from mispair.audit.verdicts import Damage

Rows = NDArray[np.int64]

FURTHEST = 100  # rows either way
_FEWEST = 20  # rows of a stretch that count as one
_GAIN = 0.3  # share of the rows of a stretch that must match k rows on and not as given


def find_shift(space: Space, image_rows: Rows, text_rows: Rows, scores: Scores, random: Scores) -> Damage | None:
    """`scores` (N,) of the given pairs and `random` of re-paired ones, by the vectors of `space`."""
    count = len(image_rows)
    # A random cell scores above this once in a hundred times.
    level = float(np.quantile(random, 0.99))
    given = scores > level
    best: tuple[float, int, int, int] | None = None
    for k in (sign * step for step in range(1, min(FURTHEST, count // 2) + 1) for sign in (1, -1)):
        there = np.arange(max(0, -k), count - max(0, k))
        shifted = space.score(image_rows[there], text_rows[there + k]) > level
        gain = shifted.astype(np.float64) - given[there] - _GAIN / 2
        total, start, stop = _best_stretch(gain)
        if best is None or total > best[0]:
            best = (total, k, int(there[start]), int(there[stop]) + 1)
    if best is None:
        return None
    _, k, start, stop = best
    inside = np.arange(start, stop)
    matches = space.score(image_rows[inside], text_rows[inside + k]) > level
    now, then = float(given[inside].mean()), float(matches.mean())
    if len(inside) < _FEWEST or then - now < _GAIN:
        return None
    wrong = inside[matches & ~given[inside]]
    end = "on" if stop + max(k, 0) >= count - FURTHEST else f"to row {stop - 1:,}"
    by = f"{abs(k):,} row{'s' if abs(k) > 1 else ''}"
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


def _best_stretch(gain: NDArray[np.float64]) -> tuple[float, int, int]:
    """The stretch with the largest sum: sum, first, last."""
    before = np.concatenate([[0.0], np.cumsum(gain)])
    lowest = np.minimum.accumulate(before[:-1])
    last = int(np.argmax(before[1:] - lowest))
    first = int(np.argmin(before[: last + 1]))
    return float(before[last + 1] - before[first]), first, last
