"""Evidence, uncertainty and the Dirichlet loss: by hand and against loops."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from mispair.functional import evidential_losses as evidential
from tests import oracles
from tests.functional.samples import PRIMES, draw, scores


class TestEvidence:
    @given(n=PRIMES, m=PRIMES, seed=st.integers(0, 1000))
    def test_equals_the_loop(self, n, m, seed):
        e = evidential.evidence(scores(n, m, seed) * 4 - 2)
        target = torch.zeros(n, m, dtype=torch.float64)
        target[0, 0] = 1  # the other rows have no partner
        truth = oracles.dirichlet_loss(e.numpy(), target.numpy(), 0.1)
        assert np.allclose(evidential.dirichlet_loss(e, target), truth, rtol=1e-9)

    def test_uncertainty_is_total_without_evidence(self):
        assert torch.allclose(evidential.uncertainty(torch.zeros(3, 7)), torch.ones(3))
        assert (evidential.uncertainty(torch.full((3, 7), 9.0)) == 0.1).all()


class TestRivalry:
    def test_by_hand(self):
        e = torch.tensor([[4.0, 1.0, 1.0], [3.0, 1.0, 0.5], [0.0, 0.5, 2.0]])
        # e + its transpose: rows (8, 4, 1), (4, 2, 1), (1, 1, 4)
        assert torch.allclose(evidential.rivalry(e), torch.tensor([4 / 12, 4 / 6, 1 / 5]))

    @given(n=PRIMES, seed=st.integers(0, 1000))
    def test_above_half_exactly_where_another_has_the_most_evidence(self, n, seed):
        e = draw(n, n, seed=seed)
        share = (e + e.T) / (e + e.T).sum(1, keepdim=True)
        assert torch.equal(evidential.rivalry(e) > 0.5, share.argmax(1) != torch.arange(n))

    def test_equal_evidence_is_no_reason_to_doubt(self):
        assert (evidential.rivalry(torch.ones(7, 7)) <= 0.5).all()
