"""IMRAM equals the pair-by-pair recursion in every mode, with its gradients."""

from __future__ import annotations

import copy

import pytest
import torch

from mispair.models import imram
from mispair.models.kernels import recompute
from mispair.models.kernels.caption_groups import padded
from tests import model_oracles as oracle
from tests.models.batches import images, tiny, unpadded, words

COUNTS, LENGTHS = [4, 1, 6, 2, 5], [3, 7, 1, 3, 5]


@pytest.mark.parametrize("loss", ["dense", "hardest"])
@pytest.mark.parametrize(
    ("mode", "steps", "norm"),
    [("text", 3, False), ("image", 3, False), ("full", 3, True), ("full", 1, False), ("text", 2, True)],
)
def test_scores_and_gradients_equal_the_recursion(mode: str, steps: int, norm: bool, loss: str) -> None:
    ours = tiny("imram", slots=None, mode=mode, steps=steps, query_norm=norm)
    theirs = copy.deepcopy(ours)
    pictures, texts = images(COUNTS), words(LENGTHS)
    mine = ours.similarity(ours.encode_images(*pictures), ours.encode_texts(*texts))
    regions = oracle.encode_regions(theirs, unpadded(*pictures))
    other = oracle.imram_scores(theirs, regions, oracle.encode_words(theirs, unpadded(*texts)))
    torch.testing.assert_close(mine, other, rtol=1e-9, atol=1e-11)
    weights = torch.linspace(-1, 2, mine.numel(), dtype=mine.dtype).view(mine.shape)
    for scores in (mine, other):
        (oracle.hardest_triplet(scores) if loss == "hardest" else (scores * weights).sum()).backward()
    scale = max(float(p.grad.norm()) for p in theirs.parameters() if p.grad is not None)
    for (key, p), q in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        expected = torch.zeros_like(p) if q.grad is None else q.grad
        assert (p.grad - expected).norm() <= 1e-8 * scale, key


def test_padded_groups_and_small_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, other = tiny("imram", slots=None), tiny("imram", slots=None)
    pictures, texts = images(COUNTS), words(LENGTHS)
    found = []
    for model in (plain, other):
        scores = model.similarity(model.encode_images(*pictures), model.encode_texts(*texts))
        oracle.hardest_triplet(scores).backward()
        found.append(scores)
        monkeypatch.setattr(imram, "by_length", padded)
        monkeypatch.setattr(imram, "block_rows", lambda device, width: 20)
        monkeypatch.setattr(recompute, "live_cells", lambda grad: None)
    torch.testing.assert_close(found[1], found[0], rtol=1e-9, atol=1e-11)
    for p, q in zip(plain.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(q.grad, p.grad, rtol=1e-8, atol=1e-10)
