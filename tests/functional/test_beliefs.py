"""What DECL, GSC and CRCL make of a batch: by hand, against slow loops, with gradients and refusals."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mispair.functional import consistency, contrast, evidence
from tests import oracles

PRIMES = st.sampled_from([2, 3, 5, 7, 11, 13])


def draw(*shape, seed=0):
    return torch.rand(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


class TestRivalry:
    def test_by_hand(self):
        e = torch.tensor([[4.0, 1.0, 1.0], [3.0, 1.0, 0.5], [0.0, 0.5, 2.0]])
        # e + its transpose: rows (8, 4, 1), (4, 2, 1), (1, 1, 4)
        assert torch.allclose(evidence.rivalry(e), torch.tensor([4 / 12, 4 / 6, 1 / 5]))

    @given(n=PRIMES, seed=st.integers(0, 1000))
    def test_above_half_exactly_where_another_has_the_most_evidence(self, n, seed):
        e = draw(n, n, seed=seed)
        share = (e + e.T) / (e + e.T).sum(1, keepdim=True)
        assert torch.equal(evidence.rivalry(e) > 0.5, share.argmax(1) != torch.arange(n))

    def test_equal_evidence_is_no_reason_to_doubt(self):
        assert (evidence.rivalry(torch.ones(7, 7)) <= 0.5).all()


class TestActiveComplementary:
    @given(n=PRIMES, seed=st.integers(0, 1000), tau=st.floats(0.1, 1.0))
    def test_equals_the_loop(self, n, seed, tau):
        scores, labels = draw(n, n, seed=seed), draw(n, seed=seed + 1)
        truth = oracles.active_complementary(scores.numpy(), labels.numpy(), tau, 5.0)
        assert np.allclose(contrast.active_complementary(scores, labels, tau, 5.0), truth)

    def test_label_one_is_info_nce_and_the_tangent_of_negatives(self):
        scores = draw(7, 7)
        loss = contrast.active_complementary(scores, torch.ones(7, dtype=torch.float64), 0.2, 5.0)
        parts = contrast.info_nce(scores, 0.2) + 5 * contrast.complementary(scores, 0.2, "tan")
        assert torch.allclose(loss, parts)

    def test_label_zero_pushes_at_most_one_per_direction(self):
        scores = torch.eye(7) * -50  # every pair is as wrong as can be
        loss = contrast.active_complementary(scores, torch.zeros(7), 0.05, 5.0)
        assert torch.allclose(loss, torch.full((7,), 10.0))

    def test_gradients(self):
        scores, labels = draw(5, 5).requires_grad_(), draw(5, seed=1)
        assert torch.autograd.gradcheck(lambda s: contrast.active_complementary(s, labels, 0.3), (scores,))

    def test_a_column_of_labels_is_refused(self):
        with pytest.raises(ValueError, match=r"one value per pair, shape \(3,\), got \(3, 1\)"):
            contrast.active_complementary(torch.rand(3, 3), torch.rand(3, 1))


class TestStructures:
    @given(n=PRIMES, width=PRIMES, seed=st.integers(0, 1000))
    def test_equal_the_loop(self, n, width, seed):
        images, texts, trust = draw(n, width, seed=seed), draw(n, 3, seed=seed + 1), draw(n, seed=seed + 2)
        by_image, by_text = consistency.structures(images, texts, trust)
        assert np.allclose(by_image, oracles.structures(images.numpy(), trust.numpy()))
        assert np.allclose(by_text, oracles.structures(texts.numpy(), trust.numpy()))

    def test_rotating_one_side_changes_nothing(self):
        images, trust = draw(11, 5), torch.ones(11, dtype=torch.float64)
        turn = torch.linalg.qr(draw(5, 5, seed=3)).Q
        by_image, by_text = consistency.structures(images, images @ turn, trust)
        assert torch.allclose(by_image, by_text)

    def test_other_pairs_are_refused(self):
        with pytest.raises(ValueError, match="of the same pairs, got 3, 4"):
            consistency.structures(torch.rand(3, 2), torch.rand(4, 2), torch.rand(3))
