"""Triplets and margins: by hand, against loops."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mispair.errors import InputError
from mispair.functional import ranking_losses as ranking
from tests import oracles
from tests.functional.samples import PRIMES, scores


class TestTriplet:
    def test_by_hand(self):
        s = torch.tensor([[0.9, 0.8], [0.1, 0.5]])
        captions, images = ranking.hinge_costs(s, 0.2)
        assert torch.allclose(captions, torch.tensor([[0.0, 0.1], [0.0, 0.0]]), atol=1e-6)
        assert torch.allclose(images, torch.tensor([[0.0, 0.5], [0.0, 0.0]]), atol=1e-6)
        assert torch.allclose(ranking.triplet(s, 0.2), torch.tensor([0.1, 0.5]), atol=1e-6)

    @given(
        n=PRIMES,
        seed=st.integers(0, 1000),
        negatives=st.sampled_from(["hardest", "mean", "top_k"]),
        k=st.integers(1, 5),
    )
    def test_equals_the_double_loop_with_a_margin_per_pair(self, n, seed, negatives, k):
        s = scores(n, seed=seed)
        margin = 0.3 * torch.rand(n, dtype=torch.float64, generator=torch.Generator().manual_seed(seed + 1))
        truth = oracles.triplet(s.numpy(), margin.numpy(), negatives, k)
        assert np.allclose(ranking.triplet(s, margin, negatives, k).numpy(), truth, atol=1e-12)

    def test_the_margin_follows_the_anchor_in_both_directions(self):
        s = scores(7, seed=3)
        margin = torch.linspace(0.05, 0.4, 7, dtype=torch.float64)
        captions, images = ranking.hinge_costs(s, margin)
        for i in range(7):
            for j in range(7):
                if i != j:
                    assert captions[i, j] == max(0, margin[i] + s[i, j] - s[i, i])
                    assert images[i, j] == max(0, margin[j] + s[i, j] - s[j, j])

    def test_zero_when_the_diagonal_wins_by_the_margin(self):
        assert ranking.triplet(torch.eye(11), 0.9).abs().max() == 0

    def test_a_single_pair_has_no_negatives(self):
        for negatives in ("hardest", "mean", "top_k"):
            assert ranking.triplet(torch.rand(1, 1), 0.2, negatives, k=3).item() == 0

    @given(seed=st.integers(0, 1000))
    def test_permuting_pairs_permutes_losses(self, seed):
        s = scores(11, seed=seed)
        order = torch.randperm(11, generator=torch.Generator().manual_seed(seed))
        assert torch.allclose(ranking.triplet(s, 0.2)[order], ranking.triplet(s[order][:, order], 0.2))

    def test_soft_margins(self):
        label = torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64)
        expected = {
            "exponential": [0, 0.2 * (10**0.5 - 1) / 9, 0.2],
            "linear": [0, 0.1, 0.2],
            "sine": [0, 0.1, 0.2],
        }
        for curve, values in expected.items():
            assert torch.allclose(ranking.soft_margin(0.2, label, curve), torch.tensor(values, dtype=torch.float64))


@given(PRIMES, st.integers(0, 1000))
def test_a_margin_per_cell_against_loops(n, seed):
    generator = torch.Generator().manual_seed(seed)
    s, m = torch.randn(n, n, generator=generator), torch.rand(n, n, generator=generator)
    found = ranking.triplet_by_cell(s, m)
    for k in range(n):
        others = [j for j in range(n) if j != k]
        captions = max((max(0.0, float(m[k, j] + s[k, j] - s[k, k])) for j in others), default=0.0)
        images = max((max(0.0, float(m[j, k] + s[j, k] - s[k, k])) for j in others), default=0.0)
        assert abs(float(found[k]) - captions - images) < 1e-5
    with pytest.raises(InputError, match="one per cell"):
        ranking.triplet_by_cell(s, m[:, :1].expand(n, 1) if n > 1 else m[0])
