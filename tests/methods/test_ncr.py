"""NCR: who learns from whom, what labels and margins are, and the released slips against slow oracles."""

import numpy as np
import pytest
import torch

from mispair.functional.soft_labels import correspondence
from mispair.half_precision import bfloat16
from mispair.methods.ncr import NCR, NCRConfig
from tests.methods import two_networks
from tests.methods.two_networks import captured

BATCH = 32


def make(data, **values):
    return two_networks.make(NCR, NCRConfig, data, BATCH, **values)


def test_both_networks_warm_up_on_everybody(data):
    method, run = make(data)
    method.epoch(0, run)
    assert run.updates == ["a", "b"]
    assert run.streams == [{"batch": None}] * 2


def test_each_learns_from_the_split_of_the_other(data):
    method, run = make(data)
    method.epoch(1, run)
    assert run.updates == ["a", "b"]
    for stream, teacher in zip(run.streams, "ba", strict=True):
        assert list(stream) == ["matched"]
        trusted = run.opinions[teacher][stream["matched"]]
        assert trusted.max() < np.delete(run.opinions[teacher], stream["matched"]).min()


def test_mismatched_pairs_come_late_and_in_a_second_step(data):
    method, run = make(data)
    method.epoch(2, run)
    assert run.updates == ["a", "a", "b", "b"]
    assert [list(stream) for stream in run.streams] == [["matched", "mismatched"]] * 2
    for stream in run.streams:
        assert np.array_equal(np.sort(np.concatenate(list(stream.values()))), np.arange(len(data)))


def test_the_history_is_the_mean_of_both(data):
    method, run = make(data)
    method.epoch(1, run)
    assert np.allclose(run.columns["signal"], (run.opinions["a"] + run.opinions["b"]) / 2)
    assert set(run.columns) == {"loss", "signal", "posterior", "mismatched"}
    called = [np.setdiff1d(np.arange(len(data)), stream["matched"]) for stream in run.streams]
    assert np.array_equal(np.flatnonzero(run.columns["mismatched"]), np.intersect1d(*called))


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0), (0.02, 0), (1.0, BATCH)])
def test_almost_nobody_and_everybody_mismatched(data, monkeypatch, share, expected):
    decide = lambda fit, losses, *_: np.arange(len(losses)) < share * len(losses)  # noqa: E731
    monkeypatch.setattr("mispair.functional.loss_split.decide_mismatched", decide)
    method, run = make(data)
    method.epoch(2, run)
    if expected:  # the least suspicious batch is trusted all the same
        assert [len(stream["matched"]) for stream in run.streams] == [expected] * 2
        assert "mismatched" in run.streams[0]
    else:
        assert [list(stream) for stream in run.streams] == [["matched"]] * 2
    assert run.updates[0] == "a"
    assert run.updates[-1] == "b"


def test_targets_are_judged_in_evaluation_mode_without_gradient(data):
    method, run = make(data)
    seen = []
    encode = run.encode

    def watch(model, batch):
        seen.append((model is method.modules["a"], model.training, torch.is_grad_enabled()))
        return encode(model, batch)

    run.encode = watch
    for net in method.modules.values():
        net.train()
    method.epoch(2, run)
    judged, learned = (True, False, False), (True, True, True)
    # a judges the matched batch, both judge the mismatched one, then a learns from each
    assert seen[:5] == [judged, judged, (False, False, False), learned, learned]
    assert all(net.training for net in method.modules.values())


def test_labels_and_losses_by_hand(data):
    method, run = make(data)
    for net in method.modules.values():
        net.eval()
    (scores, labels, losses), (other_scores, other_labels, _), *_ = captured(method, run, 2)
    batch = data.batch(run.streams[0]["matched"][:BATCH])
    posterior = method._split(run)["b"].p_mismatch[batch.pair_ids.numpy()]
    prediction = correspondence(scores, 0.2)
    assert torch.allclose(labels, torch.tensor(1 - posterior).float() * (1 - prediction) + prediction, atol=1e-6)
    assert torch.allclose(losses, slow_triplet(scores, labels, "anchor"), atol=1e-6)
    mismatched = data.batch(run.streams[0]["mismatched"][:BATCH])
    judged = [correspondence(net.similarity(*run.encode(net, mismatched)), 0.2) for net in method.modules.values()]
    assert torch.allclose(other_labels, (judged[0] + judged[1]) / 2, atol=1e-6)
    assert other_scores.shape == (BATCH, BATCH)


def slow_triplet(scores, labels, margins_of):
    """Hardest-negative triplet cell by cell. `margins_of`: which pair's label gives the margin of cell (i, j)."""
    n = len(scores)
    losses = torch.zeros(n)
    for i in range(n):
        captions, images = [0.0], [0.0]
        for j in range(n):
            if i == j:
                continue
            own, other = {
                "anchor": lambda i, j: (labels[i], labels[i]),
                "row": lambda i, j: (labels[i], labels[j]),
                "cell": lambda i, j: (labels[i, j], labels[j, i]),
            }[margins_of](i, j)
            captions.append(float(0.2 * (10**own - 1) / 9 + scores[i, j] - scores[i, i]))
            images.append(float(0.2 * (10**other - 1) / 9 + scores[j, i] - scores[i, i]))
        losses[i] = max(captions) + max(images)
    return losses


@pytest.mark.parametrize("compat", ["none", "hard_margin", "first_prediction", "broadcast"])
def test_released_slips_against_a_slow_oracle(data, compat):
    method, _ = make(data, compat=compat)
    generator = torch.Generator().manual_seed(3)
    n = 13
    scores = torch.rand(n, n, generator=generator)
    weights, prediction = (torch.rand(n, generator=generator) for _ in range(2))
    losses = method._losses(scores, method._refine(weights, prediction))
    if compat == "hard_margin":
        expected = slow_triplet(scores, torch.ones(n), "anchor")
    elif compat == "first_prediction":
        labels = torch.stack([weights[i] + (1 - weights[i]) * prediction[0] for i in range(n)])
        expected = slow_triplet(scores, labels, "row")
    elif compat == "broadcast":
        labels = torch.tensor([[weights[i] + (1 - weights[i]) * prediction[j] for j in range(n)] for i in range(n)])
        expected = slow_triplet(scores, labels, "cell")
    else:
        labels = torch.stack([weights[i] + (1 - weights[i]) * prediction[i] for i in range(n)])
        expected = slow_triplet(scores, labels, "anchor")
    assert torch.allclose(losses, expected, atol=1e-6)


def test_slips_change_what_is_learned(data):
    generator = torch.Generator().manual_seed(0)
    scores, weights, prediction = torch.rand(13, 13, generator=generator), *torch.rand(2, 13, generator=generator)
    values = []
    for compat in ("none", "hard_margin", "first_prediction", "broadcast"):
        method, _ = make(data, compat=compat)
        values.append(float(method._losses(scores, method._refine(weights, prediction)).sum()))
    assert len({round(value, 4) for value in values}) == 4


def test_mixed_precision_learns_after_judging(data):
    """Low-precision copies of weights made while judging carry no gradient and must not be found again."""
    method, run = make(data)
    with bfloat16("cpu"):
        run.sweep(
            lambda run, **batches: method._step("a", "b", torch.full((len(data),), 0.9), run, **batches),
            matched=np.arange(BATCH),
            mismatched=np.arange(BATCH),
        )
    grads = {name: p.grad for name, p in method.modules["a"].named_parameters()}
    assert all(grad is not None and grad.abs().sum() > 0 for grad in grads.values()), grads.keys()
