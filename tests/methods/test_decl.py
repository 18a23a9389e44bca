"""DECL: labels from evidence, a target of zeros where a pair is doubted, negatives that harden with the steps."""

import numpy as np
import pytest
import torch

from mispair.functional.evidential_losses import dirichlet_loss, evidence
from mispair.functional.ranking_losses import triplet
from mispair.methods.decl import DECL, DECLConfig
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
    net = build_model(VSEConfig(embed=32, word_dim=16, words="bag"), input_sizes(data))
    return DECL(DECLConfig(**{"warmup_epochs": 1, **values}), lambda: net, BATCH), RecordingRun(data, BATCH)


def test_warm_up_believes_everybody():
    method, run = make()
    logits = method._logits(run, run.data.batch(range(BATCH)))
    found, target = evidence(logits), torch.eye(BATCH)
    expected = (dirichlet_loss(found, target) + dirichlet_loss(found.T, target)).mean()
    expected = expected + 0.8 * triplet(torch.tanh(logits), 0.2, "top_k", BATCH).sum()
    method.epoch(0, run)
    assert run.columns == {}
    assert run.losses[0] == pytest.approx(expected.item(), rel=1e-5)


def test_a_doubted_pair_has_no_partner_and_does_not_rank():
    method, run = make()
    rivals = np.where(np.arange(len(run.data)) % 3 == 0, 0.9, 0.1)
    run.survey = lambda score: {"rivalry": rivals, "uncertainty": rivals}
    logits = method._logits(run, run.data.batch(range(BATCH)))
    target = torch.diag(torch.tensor([float(i % 3 != 0) for i in range(BATCH)]))
    found = evidence(logits)
    expected = (dirichlet_loss(found, target) + dirichlet_loss(found.T, target)).mean()
    expected = expected + 0.8 * triplet(torch.tanh(logits), 0.2, "top_k", BATCH)[target.diagonal() == 1].sum()
    method.epoch(1, run)
    assert run.losses[0] == pytest.approx(expected.item(), rel=1e-5)
    assert np.array_equal(run.columns["mismatched"], rivals > 0.5)


def test_nobody_believed_still_trains():
    method, run = make()
    run.survey = lambda score: {"rivalry": np.ones(len(run.data)), "uncertainty": np.ones(len(run.data))}
    method.epoch(1, run)
    assert run.updates == ["net"]
    assert run.logged["hinge"] == 0


def test_labels_follow_the_evidence_of_a_batch():
    method, run = make()
    run.batch_size = len(run.data)  # one batch: everybody meets everybody
    everyone = run.data.batch(range(len(run.data)))
    both = evidence(method._logits(run, everyone))
    both = both + both.T
    best = both.max(1).values
    method._label(run)
    # A caption repeated elsewhere has the same evidence; a tie is no reason to doubt.
    assert np.array_equal(run.columns["mismatched"], (both.diagonal() < best * (1 - 1e-6)).numpy())


def test_negatives_harden_with_the_steps():
    method, _ = make()
    found = {}
    for steps in (0, 39, 40, 41, 4919, 4920, 9999):
        method.steps = steps
        found[steps] = method._hardness(128)
    assert found == {0: 128, 39: 127, 40: 127, 41: 126, 4919: 5, 4920: 5, 9999: 5}


def test_steps_are_counted_through_warm_up_and_kept():
    method, run = make()
    method.epoch(0, run)
    method.epoch(1, run)
    assert method.steps == 2
    other, _ = make()
    other.restore(method.state())
    assert other.steps == 2


def test_stopped_inside_an_epoch_and_resumed_is_the_same_run(tmp_path):
    sets = ("method.name=decl", "method.warmup_epochs=1", "method.hardening=1.5", "data.noise.rate=0.5")
    whole, _ = train(tmp_path / "whole", *sets, "train.epochs=3")
    steps = whole.trainer.engine.steps
    for stop in (steps // 2, steps - 2):
        folder = tmp_path / str(stop)
        train(folder, *sets, "train.epochs=3", stop_after=stop)
        resumed, _ = train(folder, *sets, "train.epochs=3", resume=True)
        truth = weights(whole)
        assert all(torch.equal(value, truth[key]) for key, value in weights(resumed).items())
        assert resumed.trainer.method.steps == steps
