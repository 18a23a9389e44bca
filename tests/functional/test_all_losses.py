"""All losses alike: golden values at "all scores equal" (B = 128, margin 0.2), gradients, refusals."""

import pytest
import torch

from mispair.functional import contrastive_losses as contrastive
from mispair.functional import divergence, soft_labels
from mispair.functional import evidential_losses as evidential
from mispair.functional import ranking_losses as ranking
from tests.functional.samples import scores

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
        loss = contrastive.symmetric_cross_entropy(EQUAL).mean()
        assert loss.item() == pytest.approx(20.8442, abs=1e-4)

    def test_rcl(self):
        assert contrastive.complementary(EQUAL, kind="log").mean().item() == pytest.approx(1.99217, abs=1e-5)
        assert contrastive.complementary(EQUAL, kind="tan").mean().item() == pytest.approx(1.98442, abs=1e-5)

    def test_decl(self):
        e = evidential.evidence(torch.zeros(128, 128))
        target = torch.eye(128)
        both = evidential.dirichlet_loss(e, target) + evidential.dirichlet_loss(e.T, target)
        assert both.mean().item() == pytest.approx(4.95604, abs=1e-4)
        hinge = 0.8 * ranking.triplet(torch.zeros(128, 128), 0.2, "top_k", k=128).sum()
        assert hinge.item() == pytest.approx(40.96, abs=1e-4)

    def test_bicro_selective_warm_up(self):
        kept = ranking.smallest(ranking.triplet(EQUAL, 0.2, "mean"), 0.3)
        assert kept.sum().item() == pytest.approx(15.08125, abs=1e-4)


DIFFERENTIABLE = {
    "triplet hardest": lambda s: ranking.triplet(s, 0.2),
    "triplet mean": lambda s: ranking.triplet(s, torch.linspace(0.1, 0.3, 5, dtype=torch.float64), "mean"),
    "triplet top_k": lambda s: ranking.triplet(s, 0.2, "top_k", k=2),
    "info_nce": lambda s: contrastive.info_nce(s, 0.2),
    "reverse_cross_entropy": lambda s: contrastive.reverse_cross_entropy(s, 0.2),
    **{
        f"complementary {k}": (lambda s, k=k: contrastive.complementary(s, 0.3, k))
        for k in ("log", "tan", "abs", "exp", "gce")
    },
    **{
        f"rematching {k}": (lambda s, k=k: sum(divergence.rematching_loss(s, scores(5, seed=9) / 25, 0.2, k)))
        for k in divergence.DIVERGENCES
    },
    "dirichlet": lambda s: evidential.dirichlet_loss(evidential.evidence(s, 0.5), torch.eye(5, dtype=torch.float64)),
    "uncertainty": lambda s: evidential.uncertainty(evidential.evidence(s, 0.5)),
    "soft margin": lambda s: ranking.soft_margin(0.2, s[0], "exponential") + ranking.soft_margin(0.2, s[1], "sine"),
    "correspondence": lambda s: soft_labels.correspondence(s, 0.9),
    "similarity ratio": lambda s: soft_labels.similarity_ratio(s, s.roll(1, 1), scores(2, 5, 7), scores(2, 5, 8)),
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
        (lambda: contrastive.info_nce(torch.rand(3, 3), 0.0), "temperature must be positive, got 0.0"),
        (lambda: contrastive.info_nce(torch.rand(3, 4)), r"got \(3, 4\)"),
        (lambda: contrastive.reverse_cross_entropy(torch.rand(3, 3), floor=0.7), r"\(0, 0.5\), got 0.7"),
        (lambda: contrastive.complementary(torch.rand(3, 3), kind="cos"), "one of log, tan, abs, exp, gce, got 'cos'"),
        (lambda: contrastive.complementary(torch.rand(3, 3), negatives=torch.ones(3, 3)), "negatives must be bool"),
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
        (lambda: evidential.evidence(torch.rand(3, 3), -1), "temperature must be positive, got -1"),
        (lambda: evidential.dirichlet_loss(torch.rand(3, 3), torch.rand(3, 4)), r"alike \(n, m\)"),
        (
            lambda: soft_labels.similarity_ratio(
                torch.rand(3, 2), torch.rand(4, 2), torch.rand(1, 2), torch.rand(1, 2)
            ),
            "must pair up.*got 3 and 4",
        ),
    ],
)
def test_bad_input_gets_one_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()
