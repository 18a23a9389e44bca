"""BiCro: selective warm-up, labels by agreement beside anchors, and the released slips against slow oracles."""

import math

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from mispair.functional.mixture import fit_beta_mixture
from mispair.functional.ranking_losses import triplet
from mispair.functional.soft_labels import anchor_count, anchors, similarity_ratio
from mispair.methods.bicro import BiCro, BiCroConfig, unclipped_posterior
from tests.methods import two_networks

BATCH = 32


def make(data, **values):
    return two_networks.make(BiCro, BiCroConfig, data, BATCH, **values)


def test_warm_up_trains_on_the_smallest_losses_of_everybody(data):
    method, run = make(data)
    batch = data.batch(np.arange(BATCH))
    losses = [triplet(net.similarity(*run.encode(net, batch)), 0.2, "mean").detach() for net in method.modules.values()]
    method.epoch(0, run)
    assert run.updates == ["a", "b"]
    assert run.streams == [{"batch": None}] * 2
    expected = [float(values.sort().values[: int(0.3 * BATCH)].sum()) for values in losses]
    assert run.losses == pytest.approx(expected, rel=1e-5)


def test_each_learns_from_the_split_of_the_other(data):
    method, run = make(data)
    method.epoch(1, run)
    assert run.updates == ["a", "b"]
    for stream, teacher in zip(run.streams, "ba", strict=True):
        assert list(stream) == ["matched"]
        trusted = run.opinions[teacher][stream["matched"]]
        assert trusted.max() < np.delete(run.opinions[teacher], stream["matched"]).min()
    assert set(run.columns) == {"loss", "signal", "posterior", "mismatched"}


def test_the_peer_judges_and_the_mismatched_come_first(data):
    method, run = make(data)
    encode, seen = run.encode, []

    def watch(model, batch):
        seen.append((model is method.modules["a"], model.training, torch.is_grad_enabled(), int(batch.pair_ids[0])))
        return encode(model, batch)

    run.encode = watch
    for net in method.modules.values():
        net.train()
    method.epoch(2, run)
    matched, mismatched = (int(run.streams[0][name][0]) for name in ("matched", "mismatched"))
    assert seen[:4] == [
        (False, False, False, matched),
        (False, False, False, mismatched),
        (True, True, True, mismatched),
        (True, True, True, matched),
    ]
    assert run.updates == ["a", "a", "b", "b"]
    assert all(net.training for net in method.modules.values())


def slow_ratio(image, text, anchor_images, anchor_texts):
    """Agreement about the nearest anchor of either side, one pair at a time."""
    cos = lambda u, v: float(u @ v / (u.norm() * v.norm()))  # noqa: E731
    ratio = lambda u, v: min(u, v) / max(u, v) if u > 0 and v > 0 else 0.0  # noqa: E731
    labels = []
    for v, t in zip(image, text, strict=True):
        u = [cos(v, anchor) for anchor in anchor_images]
        w = [cos(t, anchor) for anchor in anchor_texts]
        labels.append((ratio(u[np.argmax(u)], w[np.argmax(u)]) + ratio(u[np.argmax(w)], w[np.argmax(w)])) / 2)
    return torch.tensor(labels)


def test_labels_against_a_slow_oracle(data):
    method, run = make(data)
    judge = method.modules["b"].eval()
    matched, mismatched = data.batch(np.arange(BATCH)), data.batch(np.arange(BATCH, 2 * BATCH))
    labels, others = method._label(run, judge, matched, mismatched)
    with torch.no_grad():
        sides = [side.values[:, 0] for batch in (matched, mismatched) for side in run.encode(judge, batch)]
        chosen = anchors(judge.similarity(*run.encode(judge, matched)), 0.2)
    assert len(chosen) == anchor_count(BATCH) == 4
    beside = sides[0][chosen], sides[1][chosen]
    expected = 0.5 + slow_ratio(sides[0], sides[1], *beside) / 2
    expected[chosen] = 1.0
    assert torch.allclose(labels, torch.where(expected > 0.5, expected, 0.0), atol=1e-5)
    raw = slow_ratio(sides[2], sides[3], *beside)
    assert torch.allclose(others, torch.where(raw > 0.5, raw, 0.0), atol=1e-5)
    assert 0 < (others == 0).sum() < BATCH or (raw > 0.5).all()


def test_weak_labels_count_as_none(data):
    method, _ = make(data)
    kept = method._keep(torch.tensor([0.0, 0.3, 0.5, 0.51, 1.0]))
    assert kept.tolist() == pytest.approx([0, 0, 0, 0.51, 1])


@pytest.mark.parametrize("share", [0.0, 0.02, 1.0])
def test_almost_nobody_and_everybody_mismatched(data, monkeypatch, share):
    decide = lambda fit, losses, *_: np.arange(len(losses)) < share * len(losses)  # noqa: E731
    monkeypatch.setattr("mispair.functional.loss_split.decide_mismatched", decide)
    method, run = make(data)
    method.epoch(2, run)
    assert all(len(stream["matched"]) >= BATCH for stream in run.streams)
    assert ("mismatched" in run.streams[0]) == (share == 1.0)


# ------------------------------------------------------------------------------------------------ released slips


def test_slip_labels_land_on_other_pairs(data):
    n, chosen = 7, torch.tensor([1, 4])
    ratio = torch.linspace(0.2, 0.8, n)
    right = make(data)[0]._matched_labels(ratio.clone(), chosen)
    slipped = make(data, compat="labels")[0]._matched_labels(ratio.clone(), chosen)
    others = [i for i in range(n) if i not in chosen.tolist()]
    expected = torch.ones(n)
    for k, index in enumerate(others):
        expected[index] = 0.5 + ratio[k] / 2  # ρ[k] instead of ρ[index]
    assert torch.allclose(slipped, expected)
    for index in others:
        expected[index] = 0.5 + ratio[index] / 2
    assert torch.allclose(right, expected)
    assert not torch.allclose(right, slipped)


def slow_unclipped(fit, losses):
    """P(matched) by Bayes with the densities as they are; whatever is not a number counts as 0."""
    found = []
    for loss in losses:
        x = (loss - fit.low) / (fit.high - fit.low)
        joint = []
        for weight, (a, b) in zip(fit.weights, fit.parameters, strict=True):
            constant = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b))
            joint.append(weight * constant * np.float64(x) ** (a - 1) * np.float64(1 - x) ** (b - 1))
        total = joint[0] + joint[1]
        found.append(joint[0] / total if total > 0 and np.isfinite(total) else 0.0)
    return np.array(found)


def test_slip_posterior_doubts_the_best_pair(data):
    rng = np.random.default_rng(1)
    losses = np.concatenate([rng.beta(2, 12, 401), rng.beta(9, 5, 307)])
    fit = fit_beta_mixture(losses)
    assert np.allclose(unclipped_posterior(fit, losses), slow_unclipped(fit, losses), atol=1e-9)
    best = int(losses.argmin())
    assert unclipped_posterior(fit, losses)[best] == 0
    assert fit.posterior_mismatched(losses)[best] < 0.5
    for compat, doubted in (("none", False), ("posterior", True), ("official", True)):
        method, run = make(data, compat=compat)
        split = method._split(run)["a"]
        assert split.mismatched[run.opinions["a"].argmin()] == doubted


def test_slip_margin_holds_captions_to_their_own(data):
    generator = torch.Generator().manual_seed(5)
    n = 11
    scores, labels = torch.rand(n, n, generator=generator), torch.rand(n, generator=generator)
    margins = 0.2 * (10**labels - 1) / 9
    for compat in ("none", "margin"):
        expected = torch.zeros(n)
        for i in range(n):
            captions = [
                float((margins[j] if compat == "margin" else margins[i]) + scores[i, j] - scores[i, i])
                for j in range(n)
                if j != i
            ]
            images = [float(margins[i] + scores[j, i] - scores[i, i]) for j in range(n) if j != i]
            expected[i] = max(0.0, *captions) + max(0.0, *images)
        method, _ = make(data, compat=compat)
        assert torch.allclose(method._losses(scores, labels), expected, atol=1e-6)


def test_the_posterior_slips_only_with_a_beta_mixture():
    with pytest.raises(ValidationError, match="Beta mixture"):
        BiCroConfig(compat="official", mixture="gaussian")


def test_parts_of_an_item_are_averaged_without_padding(data):
    from mispair.methods.bicro import _whole
    from mispair.types import Encoded

    values = torch.randn(3, 4, 5)
    mask = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0]]).bool()
    expected = torch.stack([values[i, : int(mask[i].sum())].mean(0) for i in range(3)])
    assert torch.allclose(_whole(Encoded(values, mask)), expected, atol=1e-6)
    # cosines do not mind lengths
    assert torch.allclose(similarity_ratio(*[expected] * 4), similarity_ratio(3 * expected, *[expected] * 3), atol=1e-6)
