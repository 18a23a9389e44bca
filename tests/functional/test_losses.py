"""Golden values at "all scores equal" (B = 128, margin 0.2), oracles by loops, gradients, refusals."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mispair.functional import consistency, contrast, divergence, evidence, ranking
from tests import oracles

PRIMES = st.sampled_from([2, 3, 5, 7, 11, 13])


def scores(n, m=None, seed=0, scale=1.0):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(n, m or n, dtype=torch.float64, generator=generator) * scale


EQUAL = torch.full((128, 128), 0.5)


class TestGolden:
    """What every run starts from: a wrong reduction or axis shows here first."""

    def test_triplet_hardest(self):
        assert ranking.triplet(EQUAL, 0.2).sum().item() == pytest.approx(51.2, abs=1e-4)

    def test_triplet_mean(self):
        losses = ranking.triplet(EQUAL, 0.2, "mean")
        assert losses.sum().item() == pytest.approx(50.8, abs=1e-4)
        assert losses[0].item() == pytest.approx(0.396875, abs=1e-6)

    def test_l2rm_warm_up(self):
        loss = contrast.symmetric_cross_entropy(EQUAL).mean()
        assert loss.item() == pytest.approx(20.8442, abs=1e-4)

    def test_rcl(self):
        assert contrast.complementary(EQUAL, kind="log").mean().item() == pytest.approx(1.99217, abs=1e-5)
        assert contrast.complementary(EQUAL, kind="tan").mean().item() == pytest.approx(1.98442, abs=1e-5)

    def test_decl(self):
        e = evidence.evidence(torch.zeros(128, 128))
        target = torch.eye(128)
        both = evidence.dirichlet_loss(e, target) + evidence.dirichlet_loss(e.T, target)
        assert both.mean().item() == pytest.approx(4.95604, abs=1e-4)
        hinge = 0.8 * ranking.triplet(torch.zeros(128, 128), 0.2, "top_k", k=128).sum()
        assert hinge.item() == pytest.approx(40.96, abs=1e-4)

    def test_bicro_selective_warm_up(self):
        kept = ranking.smallest(ranking.triplet(EQUAL, 0.2, "mean"), 0.3)
        assert kept.sum().item() == pytest.approx(15.08125, abs=1e-4)


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


class TestContrast:
    @given(n=PRIMES, seed=st.integers(0, 1000), tau=st.floats(0.05, 1.0))
    def test_equal_the_loops(self, n, seed, tau):
        s = scores(n, seed=seed)
        assert np.allclose(contrast.info_nce(s, tau), oracles.info_nce(s.numpy(), tau))
        truth = oracles.reverse_cross_entropy(s.numpy(), tau, 1e-7)
        assert np.allclose(contrast.reverse_cross_entropy(s, tau), truth)

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
            assert np.allclose(contrast.complementary(s, tau, kind, negatives), truth, atol=1e-7)

    def test_finite_when_a_wrong_partner_wins_outright(self):
        s = torch.zeros(5, 5)
        s[0, 1] = 100.0
        for kind in ("log", "tan", "abs", "exp", "gce"):
            assert torch.isfinite(contrast.complementary(s, 0.05, kind)).all()

    def test_probabilities_sum_to_one_along_their_axis(self):
        v2t, t2v = contrast.log_probabilities(scores(7, 11), 0.05)
        assert torch.allclose(v2t.exp().sum(1), torch.ones(7, dtype=torch.float64))
        assert torch.allclose(t2v.exp().sum(0), torch.ones(11, dtype=torch.float64))


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

    def test_rematching_loss_adds_row_and_column_of_a_pair(self):
        s, plan = scores(7), scores(7, seed=1) / 49
        rows = divergence.alignment_divergence(s, plan, 0.05, "i2t")
        columns = divergence.alignment_divergence(s, plan, 0.05, "t2i")
        assert torch.allclose(divergence.rematching_loss(s, plan, 0.05), rows + columns)

    def test_a_row_without_mass_asks_for_the_uniform_distribution(self):
        s = torch.zeros(3, 5, dtype=torch.float64)
        plan = torch.zeros(3, 5, dtype=torch.float64)
        assert divergence.alignment_divergence(s, plan, 0.05, "i2t").abs().max() < 1e-12


class TestEvidence:
    @given(n=PRIMES, m=PRIMES, seed=st.integers(0, 1000))
    def test_equals_the_loop(self, n, m, seed):
        e = evidence.evidence(scores(n, m, seed) * 4 - 2)
        target = torch.zeros(n, m, dtype=torch.float64)
        target[0, 0] = 1  # the other rows have no partner
        truth = oracles.dirichlet_loss(e.numpy(), target.numpy(), 0.1)
        assert np.allclose(evidence.dirichlet_loss(e, target), truth, rtol=1e-9)

    def test_uncertainty_is_total_without_evidence(self):
        assert torch.allclose(evidence.uncertainty(torch.zeros(3, 7)), torch.ones(3))
        assert (evidence.uncertainty(torch.full((3, 7), 9.0)) == 0.1).all()


class TestConsistency:
    def test_correspondence_by_hand(self):
        s = scores(23, seed=1).numpy()
        t = np.clip(0.2 - 0.5 * oracles.triplet(s, 0.2, "mean"), 0, 0.2)
        best = np.sort(t)[::-1][:3].mean()  # 23 // 10 + 1
        assert np.allclose(consistency.correspondence(torch.from_numpy(s)), np.clip(t / best, 0, 1))
        assert set(consistency.anchors(torch.from_numpy(s)).tolist()) == set(np.argsort(-t)[:3].tolist())

    def test_correspondence_of_a_hopeless_batch_is_zero(self):
        s = torch.ones(5, 5) - 2 * torch.eye(5)
        assert consistency.correspondence(s).abs().max() == 0

    def test_refined_labels_stay_one_per_pair(self):
        refined = consistency.refine_label(torch.tensor([1.0, 0.0, 0.5]), torch.tensor([0.1, 0.4, 0.4]))
        assert torch.allclose(refined, torch.tensor([1.0, 0.4, 0.7]))
        with pytest.raises(ValueError, match=r"must both be \(n,\), got \(3, 1\) and \(3,\)"):
            consistency.refine_label(torch.rand(3, 1), torch.rand(3))

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
        labels = consistency.similarity_ratio(images, texts, anchor_images, anchor_texts)
        assert np.allclose(labels, truth, atol=1e-5)
        assert (labels >= 0).all()
        assert (labels <= 1).all()

    def test_identical_sides_agree_fully(self):
        generator = torch.Generator().manual_seed(0)
        x, anchors = torch.rand(7, 5, generator=generator), torch.rand(3, 5, generator=generator)
        assert torch.allclose(consistency.similarity_ratio(x, x, anchors, anchors), torch.ones(7))


DIFFERENTIABLE = {
    "triplet hardest": lambda s: ranking.triplet(s, 0.2),
    "triplet mean": lambda s: ranking.triplet(s, torch.linspace(0.1, 0.3, 5, dtype=torch.float64), "mean"),
    "triplet top_k": lambda s: ranking.triplet(s, 0.2, "top_k", k=2),
    "info_nce": lambda s: contrast.info_nce(s, 0.2),
    "reverse_cross_entropy": lambda s: contrast.reverse_cross_entropy(s, 0.2),
    **{
        f"complementary {k}": (lambda s, k=k: contrast.complementary(s, 0.3, k))
        for k in ("log", "tan", "abs", "exp", "gce")
    },
    **{
        f"rematching {k}": (lambda s, k=k: divergence.rematching_loss(s, scores(5, seed=9) / 25, 0.2, k))
        for k in divergence.DIVERGENCES
    },
    "dirichlet": lambda s: evidence.dirichlet_loss(evidence.evidence(s, 0.5), torch.eye(5, dtype=torch.float64)),
    "uncertainty": lambda s: evidence.uncertainty(evidence.evidence(s, 0.5)),
    "soft margin": lambda s: ranking.soft_margin(0.2, s[0], "exponential") + ranking.soft_margin(0.2, s[1], "sine"),
    "correspondence": lambda s: consistency.correspondence(s, 0.9),
    "similarity ratio": lambda s: consistency.similarity_ratio(s, s.roll(1, 1), scores(2, 5, 7), scores(2, 5, 8)),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients(name):
    s = scores(5, seed=4).requires_grad_()
    assert torch.autograd.gradcheck(DIFFERENTIABLE[name], (s,), eps=1e-7, atol=1e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ranking.triplet(torch.rand(3, 4)), r"scores must be \(n, n\).*got \(3, 4\)"),
        (lambda: ranking.triplet(torch.rand(0, 0)), r"got \(0, 0\)"),
        (lambda: ranking.triplet(torch.rand(3, 3), torch.rand(3, 1)), r"shape \(3,\), got \(3, 1\)"),
        (lambda: ranking.triplet(torch.rand(3, 3), 0.2, "easy"), "hardest, mean or top_k, got 'easy'"),
        (lambda: ranking.triplet(torch.rand(3, 3), 0.2, "top_k"), "needs k of at least 1, got None"),
        (lambda: ranking.soft_margin(0.2, torch.rand(3, 1)), r"shape \(n,\), got \(3, 1\)"),
        (lambda: ranking.soft_margin(0.2, torch.rand(3), "cubic"), "exponential, linear or sine, got 'cubic'"),
        (lambda: ranking.smallest(torch.rand(3), 0.0), r"share must be in \(0, 1\], got 0.0"),
        (lambda: contrast.info_nce(torch.rand(3, 3), 0.0), "temperature must be positive, got 0.0"),
        (lambda: contrast.info_nce(torch.rand(3, 4)), r"got \(3, 4\)"),
        (lambda: contrast.reverse_cross_entropy(torch.rand(3, 3), floor=0.7), r"\(0, 0.5\), got 0.7"),
        (lambda: contrast.complementary(torch.rand(3, 3), kind="cos"), "one of log, tan, abs, exp, gce, got 'cos'"),
        (lambda: contrast.complementary(torch.rand(3, 3), negatives=torch.ones(3, 3)), "negatives must be bool"),
        (lambda: divergence.rematching_loss(torch.rand(3, 4), torch.rand(3, 4)), "use alignment_divergence"),
        (lambda: divergence.rematching_loss(torch.rand(3, 3), torch.rand(3, 4)), r"alike \(n, m\)"),
        (
            lambda: divergence.rematching_loss(torch.rand(3, 3), torch.rand(3, 3), kind="l2"),
            "sym_kl, kl, cross_entropy, js",
        ),
        (lambda: divergence.rematching_loss(torch.rand(3, 3), torch.rand(3, 3), floor=0.0), "must be positive"),
        (
            lambda: divergence.alignment_divergence(torch.rand(3, 3), torch.rand(3, 3), 0.1, "v2t"),
            "direction must be i2t or t2i, got 'v2t'",
        ),
        (lambda: evidence.evidence(torch.rand(3, 3), -1), "temperature must be positive, got -1"),
        (lambda: evidence.dirichlet_loss(torch.rand(3, 3), torch.rand(3, 4)), r"alike \(n, m\)"),
        (
            lambda: consistency.similarity_ratio(
                torch.rand(3, 2), torch.rand(4, 2), torch.rand(1, 2), torch.rand(1, 2)
            ),
            "must pair up.*got 3 and 4",
        ),
    ],
)
def test_bad_input_gets_one_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()
