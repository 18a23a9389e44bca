"""What the cost is taught on: hidden images beside their own captions, however many are hidden."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mispair.methods.base import scores_of
from mispair.models.vse import VSEConfig
from tests.methods.l2rm.samples import BATCH, make
from tests.synthetic import tiny_data


@pytest.mark.parametrize("cost", ["learned", "paper"])
def test_every_hidden_image_is_taught_with_its_own_caption(cost):
    data = tiny_data(rate=0.5)
    method, run = make(data, cost={"kind": cost}, backbone=VSEConfig(embed=32, word_dim=16, words="bag"))
    method.net.eval()
    images, texts = run.encode(method.net, data.batch(np.arange(BATCH)))
    others = run.encode_images(method.net, data.batch(np.arange(BATCH, 2 * BATCH)))
    own = scores_of(method.net, images, texts).detach()
    seen = []
    method.cost.teach = lambda scores, slots, keys: seen.append((scores, slots, keys)) or scores.sum()
    for _ in range(20):
        method.rematching.teach(run, images, texts, others)
    for scores, slots, keys in seen:
        assert len(set(slots.tolist())) == len(set(keys.tolist())) == len(keys)
        for slot, key in zip(slots.tolist(), keys.tolist(), strict=True):
            assert torch.allclose(scores[slot], own[key], atol=1e-5), "the row holds another image than the caption's"
    assert max(len(keys) for _, _, keys in seen) > 1, "with one hidden image no order can be wrong"
    if cost == "learned":  # the images it stands among are those of mismatched pairs, in their places
        scores, slots, _ = seen[-1]
        stay = [row for row in range(BATCH) if row not in slots.tolist()]
        assert torch.allclose(scores[stay], scores_of(method.net, others, texts).detach()[stay], atol=1e-5)
