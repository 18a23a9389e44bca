"""What an audit judged by: the histogram it saved, as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from mispair.auditing.verdicts import Verdicts
from mispair.report.content import Losses


def evidence(audit: Verdicts) -> list[Losses]:
    """One figure, or none where the audit saved no histogram."""
    saved = audit.facts.mixture
    edges, counts, matched, mismatched = (saved.get(name) for name in ("edges", "counts", "matched", "mismatched"))
    if not (edges and counts and matched and mismatched) or len(edges) != len(counts) + 1:
        return []
    edges, (counts, matched, mismatched) = coarser(edges, counts, matched, mismatched)
    middles = [(a + b) / 2 for a, b in pairwise(edges)]
    shares = [wrong / count if count else 0.0 for wrong, count in zip(mismatched, counts, strict=True)]
    said = (
        "The audit compares every given pair with pairs made at random from the same images and captions, which are "
        "wrong with near certainty: the more a pair looks like those, the more suspicious it is."
    )
    return [Losses(edges, counts, shares, middles, (matched, mismatched), None, "suspicion", said)]


def coarser(edges: Sequence[float], *columns: Sequence[float]) -> tuple[list[float], list[list[float]]]:
    """The same histogram in as many bins as its pairs fill (Rice's rule): lines through emptier ones are zigzags.

    Args:
        edges: (bins + 1,), equally spaced.
        columns: (bins,) each, counts; the first one says how many pairs there are.
    """
    bins = len(columns[0])
    filled = max(4, int(2 * max(sum(columns[0]), 1) ** (1 / 3)))
    step = max(1, -(-bins // filled))
    starts = range(0, bins, step)
    merged = [[float(sum(column[at : at + step])) for at in starts] for column in columns]
    width = edges[1] - edges[0]
    return [edges[0] + width * step * k for k in range(len(merged[0]) + 1)], merged
