"""CRCL: labels rest, are believed once, then follow the probabilities; networks come and go, labels stay."""

import numpy as np
import pytest
import torch

from mispair.functional.contrastive_losses import active_complementary, log_probabilities
from mispair.methods.crcl import CRCL, CRCLConfig
from mispair.models import build_model
from mispair.models.vse import VSEConfig
from mispair.workflows.assemble import input_sizes
from tests.runtime.trainings import run as train
from tests.runtime.trainings import weights
from tests.synthetic import RecordingRun, tiny_data

BATCH = 32


def make(**values):
    torch.manual_seed(0)
    data = tiny_data(rate=0.5)
    sizes = input_sizes(data)
    build = lambda: build_model(VSEConfig(embed=32, word_dim=16, words="bag"), sizes)  # noqa: E731
    return CRCL(CRCLConfig(**{"restart_at": (4, 7), **values}), build, BATCH), RecordingRun(data, BATCH)


def first(method, run):
    """Scores of the batch that the fake run always brings, and the mean probability of its pairs."""
    scores = method.net.similarity(*run.encode(method.net, run.data.batch(range(BATCH)))).detach()
    v2t, t2v = log_probabilities(scores, 0.05)
    return scores, 0.5 * (v2t.diagonal().exp() + t2v.diagonal().exp())


def test_labels_rest_then_are_believed_once():
    method, run = make()
    scores, predicted = first(method, run)
    method.epoch(0, run)
    assert (method.labels == 1).all()
    assert run.losses[0] == pytest.approx(active_complementary(scores, torch.ones(BATCH)).mean().item(), rel=1e-5)
    method.epoch(1, run)  # the last resting epoch of the first schedule: still trained with 1
    assert run.losses[1] == pytest.approx(run.losses[0], rel=1e-5)
    assert torch.allclose(method.labels[:BATCH], predicted)
    assert (method.labels[BATCH:] == 1).all()


def test_labels_follow_the_probabilities_by_hand():
    method, run = make(floor=0.0)
    _, predicted = first(method, run)
    method.epoch(1, run)
    method.labels[:BATCH] = 0.5
    method.epoch(2, run)
    assert torch.allclose(method.labels[:BATCH], 0.8 * 0.5 + 0.2 * predicted)
    assert np.allclose(run.columns["posterior"], 1 - method.labels.numpy())


def test_a_small_label_is_none():
    method, run = make()
    method.epoch(1, run)
    method.labels[:BATCH] = torch.linspace(0, 0.2, BATCH)
    method.epoch(4, run)  # rests, and still drops what is small
    kept = torch.linspace(0, 0.2, BATCH)
    assert torch.equal(method.labels[:BATCH], kept.where(kept >= 0.1, 0.0))


def test_the_network_starts_anew_and_labels_stay():
    method, run = make()
    for epoch in range(9):
        labels = None if method.labels is None else method.labels.clone()
        method.epoch(epoch, run)
        if epoch in (4, 5, 7, 8):
            assert torch.equal(method.labels, labels.where(labels >= 0.1, 0.0)), epoch
    assert [name for name, _ in run.restarts] == ["net", "net"]
    assert all(type(fresh) is type(method.net) for _, fresh in run.restarts)


SETS = (
    "method.name=crcl",
    "method.restart_at=[2]",
    "method.warmup_epochs=1",
    "data.noise.rate=0.5",
    "model.dropout=0.2",
    "train.epochs=4",
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return train(tmp_path_factory.mktemp("whole"), *SETS)[0]


@pytest.mark.parametrize("offset", [-3, 0, 1, 5])
def test_stopped_around_a_restart_and_resumed_is_the_same_run(tmp_path, whole, offset):
    steps = whole.trainer.engine.steps
    train(tmp_path, *SETS, stop_after=steps // 2 + offset)
    resumed, _ = train(tmp_path, *SETS, resume=True)
    truth = weights(whole)
    assert all(torch.equal(value, truth[key]) for key, value in weights(resumed).items())
    assert torch.equal(resumed.trainer.method.labels, whole.trainer.method.labels)


def test_a_restart_forgets_parameters_and_momentum_but_not_the_rate(tmp_path):
    whole, _ = train(tmp_path, *SETS)
    engine, method = whole.trainer.engine, whole.trainer.method
    before = weights(whole)
    rate = engine.optimizers["net"].param_groups[0]["lr"]
    whole.trainer.run.restart("net", method.make_network)
    assert engine.optimizers["net"].state_dict()["state"] == {}
    assert engine.optimizers["net"].param_groups[0]["lr"] == rate > 0
    assert any(not torch.equal(value, before[key]) for key, value in weights(whole).items())
    assert method.modules["net"] is method.net


def test_a_saved_state_does_not_change_while_training_goes_on():
    method, run = make()
    method.epoch(0, run)
    state = method.state()
    method.epoch(1, run)
    assert (state["labels"] == 1).all()
    assert not torch.equal(method.labels, state["labels"])
