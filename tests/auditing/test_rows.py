"""What stands in one row of an audit never contradicts itself: score, both ranks and the probability."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import worlds

import mispair
from mispair.functional.detection import auroc

SHAPES = {shape.name: shape for shape in (*worlds.CHOOSING, *worlds.KEPT, *worlds.BEYOND)}


@pytest.mark.parametrize("rate", [0.0, 0.3, 0.7])
@pytest.mark.parametrize(
    "name", ["middling", "weak", "five captions, image protocol", "repeated captions", "twins", "concepts, easy",
             "concepts, shifted", "captions of similar images"],
)  # fmt: skip
def test_rank_score_and_probability_agree(name, rate):
    world = worlds.make(SHAPES[name], 500, rate, seed=7)
    found = mispair.quick_audit(world.images, world.texts, image_ids=world.image_of.tolist(), captions=world.captions)
    p, score = found.p_mismatch, found.column("score")
    best = (found.column("caption_rank") == 1) & (found.column("image_rank") == 1)
    assert p[best].max(initial=0.0) < 0.5, "first both ways, and called mismatched"
    half = len(found) // 2
    last = (found.column("caption_rank") > half) & (found.column("image_rank") > half)
    beside = p < p.max() if any(damage.kind == "shifted captions" for damage in found.facts.damage) else p <= 1
    rate = p[beside].mean()  # of the pairs that are judged together
    conclusive = found.facts.conclusive and found.facts.rate > 0.05
    assert not conclusive or p[last & beside].min(initial=1.0) > rate / 2, "in the worse half both ways"
    flagged = p >= np.median(p)
    assert auroc(-score, flagged) > 0.7
    assert np.array_equal(found.is_mismatch_issue, p > 0.5)
