"""What an audit judged by: the histogram it saved, as a figure."""

from __future__ import annotations

from itertools import pairwise

from mispair.auditing.verdicts import Verdicts
from mispair.report.content import Losses


def evidence(audit: Verdicts) -> list[Losses]:
    """One figure, or none where the audit saved no histogram."""
    saved = audit.facts.mixture
    edges, counts, matched, mismatched = (saved.get(name) for name in ("edges", "counts", "matched", "mismatched"))
    if not (edges and counts and matched and mismatched) or len(edges) != len(counts) + 1:
        return []
    middles = [(a + b) / 2 for a, b in pairwise(edges)]
    shares = [wrong / count if count else 0.0 for wrong, count in zip(mismatched, counts, strict=True)]
    said = (
        "The audit compares every given pair with pairs made at random from the same images and captions, which are "
        "wrong with near certainty: the more a pair looks like those, the more suspicious it is."
    )
    return [Losses(edges, counts, shares, middles, (matched, mismatched), None, "suspicion", said)]
