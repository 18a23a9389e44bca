"""Contrastive losses: against loops, as probabilities, at extremes."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mispair.functional import contrastive_losses as contrastive
from tests import oracles
from tests.functional.samples import PRIMES, draw, scores


class TestContrast:
    @given(n=PRIMES, seed=st.integers(0, 1000), tau=st.floats(0.05, 1.0))
    def test_equal_the_loops(self, n, seed, tau):
        s = scores(n, seed=seed)
        assert np.allclose(contrastive.info_nce(s, tau), oracles.info_nce(s.numpy(), tau))
        truth = oracles.reverse_cross_entropy(s.numpy(), tau, 1e-7)
        assert np.allclose(contrastive.reverse_cross_entropy(s, tau), truth)

    @given(
        n=PRIMES,
        seed=st.integers(0, 1000),
        kind=st.sampled_from(["log", "tan", "abs", "exp", "gce"]),
        tau=st.floats(0.2, 1.0),
    )
    def test_complementary_equals_the_loop(self, n, seed, kind, tau):
        s = scores(n, seed=seed)
        chosen = torch.rand(n, n, generator=torch.Generator().manual_seed(seed)) < 0.6
        for negatives in (None, chosen):
            mask = np.ones((n, n), bool) if negatives is None else negatives.numpy()
            truth = oracles.complementary(s.numpy(), tau, kind, 0.5, mask)
            assert np.allclose(contrastive.complementary(s, tau, kind, negatives), truth, atol=1e-7)

    def test_finite_when_a_wrong_partner_wins_outright(self):
        s = torch.zeros(5, 5)
        s[0, 1] = 100.0
        for kind in ("log", "tan", "abs", "exp", "gce"):
            assert torch.isfinite(contrastive.complementary(s, 0.05, kind)).all()

    def test_probabilities_sum_to_one_along_their_axis(self):
        v2t, t2v = contrastive.log_probabilities(scores(7, 11), 0.05)
        assert torch.allclose(v2t.exp().sum(1), torch.ones(7, dtype=torch.float64))
        assert torch.allclose(t2v.exp().sum(0), torch.ones(11, dtype=torch.float64))


class TestActiveComplementary:
    @given(n=PRIMES, seed=st.integers(0, 1000), tau=st.floats(0.1, 1.0))
    def test_equals_the_loop(self, n, seed, tau):
        scores, labels = draw(n, n, seed=seed), draw(n, seed=seed + 1)
        truth = oracles.active_complementary(scores.numpy(), labels.numpy(), tau, 5.0)
        assert np.allclose(contrastive.active_complementary(scores, labels, tau, 5.0), truth)

    def test_label_one_is_info_nce_and_the_tangent_of_negatives(self):
        scores = draw(7, 7)
        loss = contrastive.active_complementary(scores, torch.ones(7, dtype=torch.float64), 0.2, 5.0)
        parts = contrastive.info_nce(scores, 0.2) + 5 * contrastive.complementary(scores, 0.2, "tan")
        assert torch.allclose(loss, parts)

    def test_label_zero_pushes_at_most_one_per_direction(self):
        scores = torch.eye(7) * -50  # every pair is as wrong as can be
        loss = contrastive.active_complementary(scores, torch.zeros(7), 0.05, 5.0)
        assert torch.allclose(loss, torch.full((7,), 10.0))

    def test_gradients(self):
        scores, labels = draw(5, 5).requires_grad_(), draw(5, seed=1)
        assert torch.autograd.gradcheck(lambda s: contrastive.active_complementary(s, labels, 0.3), (scores,))

    def test_a_column_of_labels_is_refused(self):
        with pytest.raises(ValueError, match=r"one value per pair, shape \(3,\), got \(3, 1\)"):
            contrastive.active_complementary(torch.rand(3, 3), torch.rand(3, 1))
