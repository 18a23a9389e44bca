"""GSC: trust starts at one, falls where the two sides of a pair stand differently, and weighs both losses."""

import numpy as np
import pytest
import torch

from mispair.functional.contrastive_losses import info_nce
from mispair.methods.gsc import GSC, GSCConfig
from mispair.models import build_model
from mispair.models.vse import VSEConfig
from mispair.workflows.assemble import input_sizes
from tests import oracles
from tests.runtime.trainings import run as train
from tests.runtime.trainings import weights
from tests.synthetic import RecordingRun, tiny_data

BATCH = 32


def make(**values):
    torch.manual_seed(0)
    data = tiny_data(rate=0.5)
    net = build_model(VSEConfig(embed=32, word_dim=16, words="bag"), input_sizes(data))
    return GSC(GSCConfig(**values), lambda: net, BATCH), RecordingRun(data, BATCH)


def expected_loss(method, run, trust, gamma):
    images, texts = run.encode(method.net, run.data.batch(range(BATCH)))
    by_image = torch.from_numpy(oracles.structures(images.values[:, 0].detach().double().numpy(), trust.numpy()))
    by_text = torch.from_numpy(oracles.structures(texts.values[:, 0].detach().double().numpy(), trust.numpy()))
    pairs = (0.5 * trust * info_nce(method.net.similarity(images, texts), 0.07)).mean()
    return (pairs + gamma * (0.5 * trust * info_nce(by_image @ by_text.T, 1.0)).mean()).item()


def test_everybody_is_trusted_at_first():
    method, run = make(structure_weight=0.5)
    expected = expected_loss(method, run, torch.ones(BATCH), 0.5)
    method.epoch(0, run)
    assert run.streams == [{"batch": None}]
    assert run.losses[0] == pytest.approx(expected, rel=1e-4)
    assert run.logged["trust"] == 1


def test_trust_weighs_pairs_and_those_they_are_compared_with():
    method, run = make(structure_weight=0.5)
    method.epoch(0, run)
    structural, predicted = torch.rand(2, run.pairs, generator=torch.Generator().manual_seed(1))
    method.columns |= {"structural": structural, "predicted": predicted}
    expected = expected_loss(method, run, torch.minimum(structural, predicted)[:BATCH], 0.5)
    method.epoch(1, run)
    assert run.losses[1] == pytest.approx(expected, rel=1e-4)


def test_running_means_by_hand():
    method, run = make(renewal=0.7)
    run.sweep = lambda step, **streams: None
    method.epoch(0, run)  # nothing was seen: all alike, so nobody is doubted
    assert (method.columns["structural"] == 1).all()
    rng = np.random.default_rng(0)
    wrong = np.arange(run.pairs) % 3 == 0
    agreement = np.where(wrong, rng.normal(0.1, 0.02, run.pairs), rng.normal(0.8, 0.02, run.pairs))
    method.columns["agreement"] = torch.from_numpy(agreement).float()
    method.columns["prediction"] = torch.full((run.pairs,), 0.6)
    method.epoch(1, run)
    assert method.columns["predicted"].numpy() == pytest.approx(0.7 * 0.6 + 0.3)
    assert method.columns["structural"].numpy()[wrong] == pytest.approx(0.3, abs=1e-3)
    assert method.columns["structural"].numpy()[~wrong] == pytest.approx(1.0, abs=1e-3)
    assert np.array_equal(run.columns["mismatched"], wrong)
    assert run.columns["signal"][wrong].min() > run.columns["signal"][~wrong].max()


def test_what_a_pass_sees_is_kept_by_pair():
    method, run = make()
    run.sweep = lambda step, batch: step(run, run.data.batch(range(40, 40 + BATCH)))
    seen = np.zeros(run.pairs, bool)
    seen[40 : 40 + BATCH] = True
    method.epoch(0, run)
    for name in ("agreement", "prediction"):
        column = method.columns[name].numpy()
        assert (column[~seen] == 1).all()
        assert (column[seen] < 1).all()


def test_stopped_inside_an_epoch_and_resumed_is_the_same_run(tmp_path):
    sets = ("method.name=gsc", "data.noise.rate=0.5", "train.epochs=3")
    whole, _ = train(tmp_path / "whole", *sets)
    steps = whole.trainer.engine.steps
    for stop in (steps // 2, steps - 2):
        train(tmp_path / str(stop), *sets, stop_after=stop)
        resumed, _ = train(tmp_path / str(stop), *sets, resume=True)
        truth = weights(whole)
        assert all(torch.equal(value, truth[key]) for key, value in weights(resumed).items())
        for name, column in resumed.trainer.method.columns.items():
            assert torch.equal(column, whole.trainer.method.columns[name])


def test_a_saved_state_does_not_change_while_training_goes_on():
    method, run = make()
    method.epoch(0, run)
    state = method.state()
    kept = {name: column.clone() for name, column in state.items()}
    method.epoch(1, run)
    assert all(torch.equal(column, kept[name]) for name, column in state.items())
    assert not torch.equal(method.columns["structural"], kept["structural"])
