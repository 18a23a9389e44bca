"""Soft labels and structures: by hand and against loops."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mispair.errors import InputError
from mispair.functional import soft_labels
from tests import oracles
from tests.functional.samples import PRIMES, draw, scores


class TestConsistency:
    def test_correspondence_by_hand(self):
        s = scores(23, seed=1).numpy()
        t = np.clip(0.2 - 0.5 * oracles.triplet(s, 0.2, "mean"), 0, 0.2)
        best = np.sort(t)[::-1][:3].mean()  # 23 // 10 + 1
        assert np.allclose(soft_labels.correspondence(torch.from_numpy(s)), np.clip(t / best, 0, 1))
        assert set(soft_labels.anchors(torch.from_numpy(s)).tolist()) == set(np.argsort(-t)[:3].tolist())

    def test_correspondence_of_a_hopeless_batch_is_zero(self):
        s = torch.ones(5, 5) - 2 * torch.eye(5)
        assert soft_labels.correspondence(s).abs().max() == 0

    def test_refined_labels_stay_one_per_pair(self):
        refined = soft_labels.refine_label(torch.tensor([1.0, 0.0, 0.5]), torch.tensor([0.1, 0.4, 0.4]))
        assert torch.allclose(refined, torch.tensor([1.0, 0.4, 0.7]))
        with pytest.raises(ValueError, match=r"must both be \(n,\), got \(3, 1\) and \(3,\)"):
            soft_labels.refine_label(torch.rand(3, 1), torch.rand(3))

    def test_similarity_ratio_equals_the_loop(self):
        generator = torch.Generator().manual_seed(0)
        images, texts = torch.randn(13, 5, generator=generator), torch.randn(13, 5, generator=generator)
        anchor_images, anchor_texts = torch.randn(3, 5, generator=generator), torch.randn(3, 5, generator=generator)
        cos = lambda a, b: float(torch.nn.functional.cosine_similarity(a, b, dim=0))  # noqa: E731
        ratio = lambda u, v: min(u, v) / max(u, v) if u > 0 and v > 0 else 0.0  # noqa: E731
        truth = []
        for image, text in zip(images, texts, strict=True):
            u = [cos(image, a) for a in anchor_images]
            v = [cos(text, a) for a in anchor_texts]
            first, second = int(np.argmax(u)), int(np.argmax(v))
            truth.append(0.5 * (ratio(u[first], v[first]) + ratio(u[second], v[second])))
        labels = soft_labels.similarity_ratio(images, texts, anchor_images, anchor_texts)
        assert np.allclose(labels, truth, atol=1e-5)
        assert (labels >= 0).all()
        assert (labels <= 1).all()

    def test_identical_sides_agree_fully(self):
        generator = torch.Generator().manual_seed(0)
        x, anchors = torch.rand(7, 5, generator=generator), torch.rand(3, 5, generator=generator)
        assert torch.allclose(soft_labels.similarity_ratio(x, x, anchors, anchors), torch.ones(7))


class TestStructures:
    @given(n=PRIMES, width=PRIMES, seed=st.integers(0, 1000))
    def test_equal_the_loop(self, n, width, seed):
        images, texts, trust = draw(n, width, seed=seed), draw(n, 3, seed=seed + 1), draw(n, seed=seed + 2)
        by_image, by_text = soft_labels.structures(images, texts, trust)
        assert np.allclose(by_image, oracles.structures(images.numpy(), trust.numpy()))
        assert np.allclose(by_text, oracles.structures(texts.numpy(), trust.numpy()))

    def test_rotating_one_side_changes_nothing(self):
        images, trust = draw(11, 5), torch.ones(11, dtype=torch.float64)
        turn = torch.linalg.qr(draw(5, 5, seed=3)).Q
        by_image, by_text = soft_labels.structures(images, images @ turn, trust)
        assert torch.allclose(by_image, by_text)

    def test_other_pairs_are_refused(self):
        with pytest.raises(ValueError, match="of the same pairs, got 3, 4"):
            soft_labels.structures(torch.rand(3, 2), torch.rand(4, 2), torch.rand(3))


class TestPseudoClassification:
    def test_by_hand(self):
        generator = torch.Generator().manual_seed(0)
        images, texts = torch.randn(11, 5, generator=generator), torch.randn(11, 5, generator=generator)
        found = soft_labels.pseudo_classification(images, texts)
        for k in range(11):
            p = np.exp(images[k].double().numpy())
            p /= p.sum()
            assert float(found[k]) == pytest.approx(-np.log(p[int(texts[k].argmax())]), abs=1e-5)

    def test_classes_in_use(self):
        apart, alike = 50 * torch.eye(4), 50 * torch.eye(4)[[1, 1, 1, 1]]
        assert float(soft_labels.classes_in_use(apart)) == pytest.approx(np.log(4), abs=1e-5)
        assert float(soft_labels.classes_in_use(alike)) == pytest.approx(0, abs=1e-5)
        half = soft_labels.classes_in_use(apart, torch.tensor([1.0, 1.0, 0.0, 0.0]))
        assert float(half) == pytest.approx(np.log(2) / 2, abs=1e-5)
        assert float(soft_labels.classes_in_use(apart, torch.ones(4))) == pytest.approx(np.log(4), abs=1e-5)
        assert float(soft_labels.classes_in_use(apart, torch.zeros(4))) == 0

    def test_the_text_is_taken_as_given(self):
        images, texts = torch.randn(3, 4, requires_grad=True), torch.randn(3, 4, requires_grad=True)
        soft_labels.pseudo_classification(images, texts).sum().backward()
        assert images.grad is not None
        assert texts.grad is None

    def test_other_shapes_are_refused(self):
        with pytest.raises(InputError, match="both sides"):
            soft_labels.pseudo_classification(torch.rand(3, 4), torch.rand(3, 5))
