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

from mispair.config.assemble import assemble
from mispair.config.finish import finish
from mispair.methods import METHODS, PRESETS, about
from mispair.retrieval.evaluate import RecallEvaluator
from mispair.runtime.engine import Engine
from mispair.runtime.journal import Journal
from mispair.types import PairBatch
from tests.synthetic import tiny_config

# Values that bring every phase of every method into a run of four epochs.
SHORT = {"warmup_epochs": 1, "noisy_from": 1, "restart_at": [2]}


def configure(name, *sets):
    values = PRESETS[name]().model_dump(mode="json")
    values |= {key: value for key, value in SHORT.items() if key in values}
    assigned = [f"method.{key}={json.dumps(value)}" for key, value in values.items() if key != "name"]
    return tiny_config(f"method.name={'plain' if values['name'] != 'plain' else 'l2rm'}",
                       f"method.name={values['name']}", *assigned, *sets)  # fmt: skip


def train(folder, name, *sets, resume=False, stop_after=None):
    """Train; with `stop_after`, a SIGTERM comes after so many optimizer steps."""
    config = configure(name, *sets)
    with Journal(folder / "metrics.jsonl") as journal:
        journal.console.quiet = True
        assembly = assemble(config, folder, Engine(config.engine), journal)
        if resume:
            assembly.trainer.resume()
        engine, minimize = assembly.trainer.engine, assembly.trainer.engine.minimize

        def watched(module, loss):
            minimize(module, loss)
            if engine.steps == stop_after:
                os.kill(os.getpid(), signal.SIGTERM)

        engine.minimize = watched
        return assembly, assembly.trainer.fit()


def parameters(assembly):
    modules = assembly.trainer.method.modules
    return {f"{name}.{key}": value for name in modules for key, value in modules[name].state_dict().items()}


def epochs(folder):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if k != "seconds"} for line in lines if line["event"] == "epoch"]


NOISY = ("data.limit=31", "data.noise.rate=0.5", "train.batch_size=16", "train.lr=0.01")


@pytest.fixture(scope="module", params=METHODS)
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
    networks = about(assembly.config.method.name).networks
    cost = finish(assembly)["cost"]
    assert cost["networks_scored"] == cost["networks_trained"] == networks
    assert cost["passes"] >= networks  # at least the warm-up, or the first epoch, sees every pair
    assert (cost["passes"] == pytest.approx(4, abs=0.2)) or name not in ("plain", "rcl", "gsc", "crcl")


@pytest.mark.parametrize("rate", [0.0, 0.8])
@pytest.mark.parametrize("name", PRESETS)
def test_any_share_of_noise_runs(tmp_path, name, rate):
    assembly, progress = train(tmp_path, name, "data.limit=31", f"data.noise.rate={rate}")
    assert progress.epoch == 4
    assert np.isfinite(progress.best)
    assert all(torch.isfinite(value).all() for value in parameters(assembly).values())
    assert all("loss" in line["train"] for line in epochs(tmp_path))  # no epoch is empty


@pytest.mark.parametrize("backbone", ["sgr", "saf", "imram"])
@pytest.mark.parametrize("name", PRESETS)
def test_every_method_trains_every_backbone(tmp_path, name, backbone):
    """Small batches, in which a part of a batch may be a single image."""
    sets = ("data.limit=16", "data.dev_limit=4", "data.noise.rate=0.5", "train.batch_size=16", "train.epochs=2")
    sim = () if backbone == "imram" else ("model.sim=8",)
    assembly, progress = train(tmp_path, name, *sets, f"model.name={backbone}", "model.embed=16", *sim)
    assert np.isfinite(progress.best)
    assert all(torch.isfinite(value).all() for value in parameters(assembly).values())


@pytest.mark.parametrize("name", PRESETS)
def test_mixed_precision_trains_every_parameter(tmp_path, name):
    sets = ("data.limit=31", "engine.precision=bf16", "train.epochs=3", "data.noise.rate=0.4")
    assembly, progress = train(tmp_path, name, *sets)
    assert np.isfinite(progress.best)
    for scorer in assembly.trainer.method.scorers:
        state = assembly.trainer.engine.optimizers[scorer].state
        for key, parameter in assembly.trainer.method.modules[scorer].named_parameters():
            assert state[parameter]["exp_avg_sq"].sum() > 0, (scorer, key)


@pytest.mark.parametrize("name", PRESETS)
def test_a_small_clean_set_is_learned_by_heart(tmp_path, name):
    # The paper switches the positive mask off on clean data; the default finds that out by itself.
    unmasked = ["method.forbid_given=never"] if name in ("l2rm-paper", "l2rm-official") else []
    # Long enough to know the pairs before a method judges them.
    warm = ["method.warmup_epochs=15"] if "warmup_epochs" in PRESETS[name]().model_dump() else []
    by_heart = ("data.limit=13", "train.epochs=30", "train.lr=0.01", "model.embed=64", "train.batch_size=32")
    assembly, _ = train(tmp_path, name, *unmasked, *warm, *by_heart)
    assert len(assembly.train) == 65
    method = assembly.trainer.method
    metrics = RecallEvaluator(assembly.train)([method.modules[scorer].eval() for scorer in method.scorers])
    assert metrics["rsum"] > 570, metrics


@pytest.mark.parametrize("name", METHODS)
def test_truth_files_and_machinery_are_out_of_reach(name):
    source = inspect.getsource(import_module(f"mispair.methods.{name}"))
    for word in ("truth", "open(", ".backward", "optimizer", "mispair.data", "mispair.models", "mispair.runtime"):
        assert word not in source, word
    others = [other for other in METHODS if other != name and f"mispair.methods.{other} " in source]
    assert not others, "a formula two methods share lives in functional"
    assert "truth" not in PairBatch.__slots__


@pytest.mark.parametrize("name", METHODS)
def test_a_method_says_what_it_is(name):
    facts = about(name)
    assert facts.name == name
    assert all(value for value in asdict(facts).values())
    assert "\n" not in facts.mismatched
    assert name in PRESETS
