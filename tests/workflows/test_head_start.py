"""Heads on frozen towers: where they start, and that training which makes them worse is not kept."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mispair as mp

PAIRS, NOISE = 120, 0.3


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    """Two .npy files: 24 wide images, 10 wide texts, which share the eight directions they come from."""
    rng = np.random.default_rng(0)
    meaning = rng.normal(size=(PAIRS, 8))
    folder = tmp_path_factory.mktemp("vectors")
    for name, width in (("images", 24), ("texts", 10)):
        side = meaning @ rng.normal(size=(8, width)) + NOISE * rng.normal(size=(PAIRS, width))
        np.save(folder / f"{name}.npy", side.astype(np.float32))
    return folder / "images.npy", folder / "texts.npy"


def trained(vectors, out, lr, **model):
    images, texts = vectors
    options = {f"model.{key}": value for key, value in model.items()} | {"method.loss": "infonce"}
    head = {"name": "dual", "embed": 8}
    budget = {"epochs": 2, "batch_size": 16, "lr": lr}
    run = mp.train(images, second=texts, out=out, model=head, method="plain", options=options, quiet=True, **budget)
    events = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return run, [event for event in events if event["event"] in ("start", "epoch")]


def test_a_head_that_training_makes_worse_is_kept_as_it_started(vectors, tmp_path):
    run, events = trained(vectors, tmp_path / "run", lr=30.0)
    start, *epochs = events
    assert start["event"] == "start"
    assert max(epoch["dev"]["rsum"] for epoch in epochs) < start["dev"]["rsum"]  # or it would show nothing
    assert run.metrics["dev"] == start["dev"]
    assert run.metrics["best_epoch"] == -1
    assert run.config.model.embed == 8
    assert run.evaluate("dev")["rsum"] == pytest.approx(start["dev"]["rsum"])
    assert "kept as it started" in (tmp_path / "run" / "README.md").read_text()


def test_a_head_that_starts_by_chance_is_judged_after_its_first_epoch(vectors, tmp_path):
    run, events = trained(vectors, tmp_path / "run", lr=0.01, start="random")
    assert [event["event"] for event in events] == ["epoch", "epoch"]
    assert run.metrics["best_epoch"] in (0, 1)
    assert "best epoch: " in (tmp_path / "run" / "README.md").read_text()


def test_the_start_finds_what_both_sides_share(vectors, tmp_path):
    _, (start, *_) = trained(vectors, tmp_path / "run", lr=1e-6, start="given")
    assert start["dev"]["rsum"] > 500


def test_audits_judge_by_the_best_networks_of_each_fold(vectors, tmp_path):
    """Training ruins these heads at once, so only their start can tell own partners from others."""
    run, _ = trained(vectors, tmp_path / "run", lr=30.0)
    verdicts = mp.audit(run, folds=2)
    ranks = verdicts.to_pandas()["caption_rank"]
    assert (ranks == 1).mean() > 0.8
