"""Every method alike: equal seeds, resuming, any noise, mixed precision, a small set by heart, truth out of reach."""

import inspect
import json
import os
import signal
from dataclasses import asdict
from importlib import import_module

import numpy as np
import pytest
import torch

from mispair.methods import METHODS, about_method, build_method, method_names, method_preset, method_presets
from mispair.models import build_model
from mispair.retrieval.evaluate import RecallEvaluator
from mispair.types import PairBatch
from mispair.workflows.assemble import input_sizes
from mispair.workflows.finish import finish
from mispair.workflows.train import train as train_run
from tests.runtime.trainings import epochs
from tests.synthetic import RecordingRun, stopping_engine, tiny_config, tiny_data

# Values that bring every phase of every method into a run of four epochs.
SHORT = {"warmup_epochs": 1, "noisy_from": 1, "restart_at": [2]}


def configure(name, *sets):
    values = method_preset(name).model_dump(mode="json")
    values |= {key: value for key, value in SHORT.items() if key in values}
    assigned = [f"method.{key}={json.dumps(value)}" for key, value in values.items() if key != "name"]
    return tiny_config(f"method.name={'plain' if values['name'] != 'plain' else 'l2rm'}",
                       f"method.name={values['name']}", *assigned, *sets)  # fmt: skip


def train(folder, name, *sets, resume=False, stop_after=None):
    """Train; with `stop_after`, a SIGTERM comes after so many optimizer steps."""
    config = configure(name, *sets)
    engine = stopping_engine(config.engine, stop_after)
    result = train_run(config, folder, resume=resume, engine=engine, summarize=False)
    return result.training, result.progress


def parameters(assembly):
    modules = assembly.trainer.method.modules
    return {f"{name}.{key}": value for name in modules for key, value in modules[name].state_dict().items()}


NOISY = ("data.limit=19", "data.noise.rate=0.5", "train.batch_size=16", "train.lr=0.01")


@pytest.fixture(scope="module", params=method_names())
def whole(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    assembly, progress = train(folder, request.param, *NOISY)
    return request.param, assembly, progress, epochs(folder)


def test_same_seed_equal_parameters(whole, tmp_path):
    name, assembly, _, lines = whole
    again, _ = train(tmp_path, name, *NOISY)
    ours, theirs = parameters(again), parameters(assembly)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(value, theirs[key]) for key, value in ours.items())
    assert epochs(tmp_path) == lines


@pytest.mark.parametrize("part", [0.15, 0.9])
def test_stopped_inside_an_epoch_and_resumed_is_the_same_run(whole, tmp_path, part):
    name, assembly, progress, lines = whole
    engine = assembly.trainer.engine
    _, stopped = train(tmp_path, name, *NOISY, stop_after=round(part * engine.steps))
    assert stopped.stopped
    resumed, ended = train(tmp_path, name, *NOISY, resume=True)
    theirs = parameters(assembly)
    assert all(torch.equal(value, theirs[key]) for key, value in parameters(resumed).items())
    assert epochs(tmp_path) == lines
    assert ended.best == progress.best
    assert resumed.trainer.engine.learned == engine.learned
    assert resumed.trainer.engine.judged == engine.judged


def test_with_averaged_weights_thinned_batches_and_pairs_judged_by_others_too(tmp_path):
    sets = (
        *NOISY, "method.split.evidence=others", "train.average=0.9", "train.drop_regions=0.5", "train.drop_words=0.2"
    )  # fmt: skip
    whole, _ = train(tmp_path / "whole", "l2rm", *sets)
    assert "repaired" in whole.folder.last_split()
    for part in (0.15, 0.6, 0.9):
        folder = tmp_path / str(part)
        _, stopped = train(folder, "l2rm", *sets, stop_after=round(part * whole.trainer.engine.steps))
        assert stopped.stopped
        resumed, _ = train(folder, "l2rm", *sets, resume=True)
        assert epochs(folder) == epochs(tmp_path / "whole")
        theirs = parameters(whole)
        assert all(torch.equal(value, theirs[key]) for key, value in parameters(resumed).items())
        assert resumed.folder.model_file.read_bytes() == whole.folder.model_file.read_bytes()


@pytest.mark.parametrize("after", [2])
def test_stopped_between_epochs_and_resumed_is_the_same_run(whole, tmp_path, after, monkeypatch):
    name, assembly, _, lines = whole
    validate = type(assembly.trainer)._validate

    def stop(trainer):
        if trainer.progress.epoch == after - 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return validate(trainer)

    monkeypatch.setattr(type(assembly.trainer), "_validate", stop)
    _, stopped = train(tmp_path, name, *NOISY)
    monkeypatch.undo()
    assert (stopped.stopped, stopped.epoch) == (True, after)
    resumed, _ = train(tmp_path, name, *NOISY, resume=True)
    theirs = parameters(assembly)
    assert all(torch.equal(value, theirs[key]) for key, value in parameters(resumed).items())
    assert epochs(tmp_path) == lines


def test_the_loss_is_logged_and_the_cost_is_counted(whole):
    name, assembly, _, lines = whole
    assert all(np.isfinite(line["train"]["loss"]) for line in lines)
    networks = about_method(assembly.config.method.name).networks
    cost = finish(assembly)["cost"]
    assert cost["networks_scored"] == cost["networks_trained"] == networks
    assert cost["passes"] >= networks  # at least the warm-up, or the first epoch, sees every pair
    assert (cost["passes"] == pytest.approx(4, abs=0.2)) or name not in ("plain", "rcl", "gsc", "crcl")


@pytest.mark.parametrize("rate", [0.0, 0.8])
@pytest.mark.parametrize("name", list(method_presets()))
def test_any_share_of_noise_runs(tmp_path, name, rate):
    assembly, progress = train(tmp_path, name, "data.limit=19", f"data.noise.rate={rate}")
    assert progress.epoch == 4
    assert np.isfinite(progress.best)
    assert all(torch.isfinite(value).all() for value in parameters(assembly).values())
    assert all("loss" in line["train"] for line in epochs(tmp_path))  # no epoch is empty


@pytest.mark.parametrize("backbone", ["sgr", "saf", "imram"])
@pytest.mark.parametrize("name", list(method_presets()))
def test_every_method_trains_every_backbone(tmp_path, name, backbone):
    """Small batches, in which a part of a batch may be a single image."""
    sets = ("data.limit=4", "data.dev_limit=4", "data.noise.rate=0.5", "train.batch_size=16", "train.epochs=2")
    sim = () if backbone == "imram" else ("model.sim=8",)
    assembly, progress = train(tmp_path, name, *sets, f"model.name={backbone}", "model.embed=16", *sim)
    assert np.isfinite(progress.best)
    assert all(torch.isfinite(value).all() for value in parameters(assembly).values())


@pytest.mark.parametrize("name", list(method_presets()))
def test_every_method_trains_a_head_on_frozen_towers(tmp_path, name):
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(64, 12))
    for split, part in (("train", slice(0, 48)), ("dev", slice(48, 64))):
        for side in ("image", "text"):
            noise = 0.1 * rng.normal(size=shared[part].shape)
            np.save(tmp_path / f"{split}_{side}.npy", (shared[part] + noise).astype(np.float32))
    sets = (f"data.path={tmp_path}", "data.noise.rate=0.5", "train.batch_size=16", "train.epochs=3", "train.lr=0.001")
    assembly, progress = train(tmp_path / "run", name, *sets, "model.name=dual", "model.temperature=learned")
    assert all(network.joint for network in assembly.trainer.method.networks.values())
    assert progress.best > 400, "the head ranks as its towers do, and no method ruins it"
    assert all(torch.isfinite(value).all() for value in parameters(assembly).values())


@pytest.mark.parametrize("name", list(method_presets()))
def test_mixed_precision_trains_every_parameter(tmp_path, name):
    sets = ("data.limit=19", "engine.precision=bf16", "train.epochs=3", "data.noise.rate=0.4")
    assembly, progress = train(tmp_path, name, *sets)
    assert np.isfinite(progress.best)
    for name, network in assembly.trainer.method.networks.items():
        state = assembly.trainer.engine.optimizers[name].state
        for key, parameter in network.named_parameters():
            assert state[parameter]["exp_avg_sq"].sum() > 0, (name, key)


@pytest.mark.parametrize("name", list(method_presets()))
def test_a_small_clean_set_is_learned_by_heart(tmp_path, name):
    # The paper switches the positive mask off on clean data; the default finds that out by itself.
    unmasked = ["method.transport.forbid_given=never"] if name in ("l2rm-paper", "l2rm-official") else []
    # Long enough to know the pairs before a method judges them.
    warm = ["method.warmup_epochs=15"] if "warmup_epochs" in method_preset(name).model_dump() else []
    if "warmup_share" in method_preset(name).model_dump():  # and all of them: the rest of so few would never be met
        warm.append("method.warmup_share=1.0")
    by_heart = ("data.limit=13", "train.epochs=30", "train.lr=0.01", "model.embed=64", "train.batch_size=32")
    assembly, _ = train(tmp_path, name, *unmasked, *warm, *by_heart)
    assert len(assembly.data) == 65
    networks = assembly.trainer.method.networks.values()
    metrics = RecallEvaluator(assembly.data)([network.eval() for network in networks])
    assert metrics["rsum"] > 570, metrics


@pytest.fixture(scope="module")
def mismatched_data():
    return tiny_data(rate=0.5, pictures=40)


def gradients(name, data, weights, *sets, epochs=4):
    """What every step of every phase asks of each module, with these weights by pair id."""
    config = configure(name, *sets)
    torch.manual_seed(0)
    method = build_method(config.method, lambda: build_model(config.model, input_sizes(data)), 32)
    run = RecordingRun(data)
    run.weights = weights
    found = []

    def minimize(module, loss):
        method.modules[module].zero_grad()
        loss.backward()
        asked = [p.grad.abs().sum() for p in method.modules[module].parameters() if p.grad is not None]
        if module in method.networks:  # of the others every method decides whom it teaches
            found.append((module, loss.item(), float(sum(asked))))

    run.minimize = minimize
    for epoch in range(epochs):
        method.epoch(epoch, run)
    return found


@pytest.mark.parametrize("name", list(method_presets()))
def test_a_weight_scales_the_losses_of_its_pair(name, mismatched_data):
    data, pairs = mismatched_data, len(mismatched_data)
    # What the words of a text teach by themselves is no loss of a pair.
    words = ("method.siblings.halves=0",) if name.startswith("l2rm") else ()
    # Nor is what keeps the classes of a batch apart: it is of all pairs together.
    words = ("method.entropy_weight=0",) if name == "pc2" else words
    plain = gradients(name, data, None, *words)
    assert any(asked > 0 for _, _, asked in plain)
    assert gradients(name, data, torch.ones(pairs), *words) == plain, "a weight of 1 changes nothing"
    for module, loss, asked in gradients(name, data, torch.zeros(pairs), *words):
        assert (loss, asked) == (0, 0), f"{module} learns from pairs that do not count"
    rest = torch.ones(pairs)
    rest[0] = 0.0  # a pair of the first batch
    # Two siblings count as much as both of them: not the sum of what each does.
    apart = (*words, "method.siblings.when=never") if name.startswith("l2rm") else words
    whole, without, alone = (gradients(name, data, weights, *apart, epochs=1)[0] for weights in (None, rest, 1 - rest))
    assert without[1] != whole[1] or name == "bicro", "the first pair had no loss of its own"
    assert without[1] + alone[1] == pytest.approx(whole[1], rel=1e-4)


@pytest.mark.parametrize(
    ("name", "sets"), [*((name, ()) for name in method_presets()), ("l2rm", ("method.split.evidence=others",))]
)
def test_what_people_said_stands_above_the_split(name, sets, mismatched_data):
    data, config = mismatched_data, configure(name, *sets)
    takes = METHODS.find(config.method.name).takes_known
    columns = {}
    for known in (None, np.random.default_rng(0).integers(-1, 2, len(data)).astype(np.int8)):
        torch.manual_seed(0)
        method = build_method(config.method, lambda: build_model(config.model, input_sizes(data)), 32)
        run = RecordingRun(data)
        run.known = known
        for epoch in range(3):
            method.epoch(epoch, run)
        columns[known is None] = run.columns
    assert takes == ("mismatched" in run.columns), "a method that tells pairs apart heeds what is known of them"
    if takes:
        said = known >= 0
        # of batches that were never seen nothing is known yet: crcl learns of a pair when it meets it
        said[32:] &= name != "crcl"
        assert (columns[False]["mismatched"][said] == (known[said] == 1)).all()
        np.testing.assert_allclose(columns[False]["posterior"][said], known[said])
        assert (columns[True]["mismatched"][said] != (known[said] == 1)).any(), "the split alone thinks otherwise"


@pytest.mark.parametrize("name", method_names())
def test_truth_files_and_machinery_are_out_of_reach(name):
    source = inspect.getsource(import_module(METHODS.find(name).__module__))
    for word in ("truth", "open(", ".backward", "optimizer", "mispair.data", "mispair.models", "mispair.runtime"):
        assert word not in source, word
    others = [other for other in method_names() if other != name and f"mispair.methods.{other} " in source]
    assert not others, "a formula two methods share lives in functional"
    assert "truth" not in PairBatch.__slots__


@pytest.mark.parametrize("name", method_names())
def test_a_method_says_what_it_is(name):
    facts = about_method(name)
    assert facts.name == name
    assert all(value for value in asdict(facts).values())
    assert "\n" not in facts.mismatched
    assert method_preset(name).name == name
