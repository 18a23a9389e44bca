"""Divergence from a refined alignment: against loops, bounds, both directions."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mispair.functional import divergence
from tests import oracles
from tests.functional.samples import PRIMES, scores


class TestDivergence:
    @given(
        n=PRIMES,
        m=PRIMES,
        seed=st.integers(0, 1000),
        kind=st.sampled_from(divergence.DIVERGENCES),
        tau=st.floats(0.1, 1),
    )
    def test_equals_the_loop_each_way(self, n, m, seed, kind, tau):
        s, plan = scores(n, m, seed), scores(n, m, seed + 1) / (n * m)
        rows = divergence.alignment_divergence(s, plan, tau, "i2t", kind)
        assert np.allclose(rows, oracles.divergence(s.numpy(), plan.numpy(), tau, kind, 1e-10))
        columns = divergence.alignment_divergence(s, plan, tau, "t2i", kind)
        assert np.allclose(columns, oracles.divergence(s.numpy().T, plan.numpy().T, tau, kind, 1e-10))

    @given(seed=st.integers(0, 1000), scale=st.floats(0, 50))
    def test_bounds(self, seed, scale):
        s, plan = scores(7, 11, seed, scale), scores(7, 11, seed + 1) ** 40
        for direction in ("i2t", "t2i"):
            js = divergence.alignment_divergence(s, plan, 0.05, direction, "js")
            assert (js >= -1e-12).all()
            assert (js <= math.log(2) + 1e-12).all()
            assert (divergence.alignment_divergence(s, plan, 0.05, direction, "kl") >= -1e-12).all()
            assert (divergence.alignment_divergence(s, plan, 0.05, direction, "sym_kl") >= -1e-12).all()

    def test_js_of_opposite_certainties_is_ln_2(self):
        s = torch.tensor([[math.log(1e-4 / (1 - 1e-4)), 0.0]], dtype=torch.float64)
        plan = torch.tensor([[1 - 1e-4, 1e-4]], dtype=torch.float64)
        js = divergence.alignment_divergence(s, plan, 1.0, "i2t", "js").item()
        assert js == pytest.approx(0.692, abs=1e-3)

    def test_zero_when_prediction_is_the_plan(self):
        s = scores(7)
        for kind in ("sym_kl", "kl", "js"):
            rows = divergence.alignment_divergence(s, (s / 0.05).softmax(1), 0.05, "i2t", kind)
            assert rows.abs().max() < 1e-9

    def test_rematching_loss_is_both_directions(self):
        s, plan = scores(7), scores(7, seed=1) / 49
        rows = divergence.alignment_divergence(s, plan, 0.05, "i2t")
        columns = divergence.alignment_divergence(s, plan, 0.05, "t2i")
        by_image, by_text = divergence.rematching_loss(s, plan, 0.05)
        assert torch.equal(by_image, rows)
        assert torch.equal(by_text, columns)

    def test_a_row_without_mass_asks_for_the_uniform_distribution(self):
        s = torch.zeros(3, 5, dtype=torch.float64)
        plan = torch.zeros(3, 5, dtype=torch.float64)
        assert divergence.alignment_divergence(s, plan, 0.05, "i2t").abs().max() < 1e-12
