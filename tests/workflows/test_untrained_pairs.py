"""Towers that learn are asked before their first step: for the rate that a run states, and for what L2RM trusts."""

import numpy as np
import pytest
import torch

from mispair.data import open_split
from mispair.data.untrained import untrained_vectors
from mispair.encoders.towers import Towers
from mispair.functional.judged_by_others import judge_by_others
from mispair.functional.leave_one_out import centred
from mispair.workflows import audit as audits
from mispair.workflows.embed import Encoding, with_features
from mispair.workflows.train import train
from mispair.workflows.trained_run import load_run
from tests.workflows.tower_runs import configured


@pytest.mark.parametrize("encoder", ["clip", "dinov2+bert"])
def test_the_rate_is_that_of_the_encoders_vectors_whatever_the_towers_became(hub, tmp_path, encoder):
    name = "+".join(str(hub / part) for part in encoder.split("+"))
    config = configured(hub, "clip", f"data.encoder={name}", "data.noise.rate=0.4", "model.tune=full", "train.lr=0.01")
    said = train(config, tmp_path / "run").summary

    raw = config.data.model_copy(update={"live": False})
    vectors = open_split(with_features(raw, Encoding(name, texts=True)), "train")
    frozen = untrained_vectors(vectors)
    assert (frozen.joint is not None) == (encoder == "clip")
    estimate = judge_by_others(frozen.images, frozen.texts, vectors.table.image_rows, joint=frozen.joint).estimate
    assert said["mismatch_rate"] == pytest.approx(estimate.rate, abs=1e-4)
    assert said["mismatch_rate_ci"] == pytest.approx((estimate.low, estimate.high), abs=1e-4)
    assert said["noise"]["rate"] == pytest.approx(0.4, abs=0.1)


def test_l2rm_trusts_pairs_by_them_from_its_first_step(hub, tmp_path):
    config = configured(hub, "clip", "data.noise.rate=0.4", method="l2rm")
    done = train(config, tmp_path / "run")
    said = done.method.identification.others.said
    judged = done.training.untrained()
    again = judge_by_others(judged.images, judged.texts, done.training.data.table.image_rows, joint=judged.joint)
    assert said["p_mismatch"] == pytest.approx(again.p_mismatch)
    split = done.folder.last_split()
    assert split["posterior"] == pytest.approx(again.p_mismatch), "every picture has one caption"


def test_one_pass_is_enough_and_draws_nothing_from_the_training(hub, tmp_path, monkeypatch):
    seen = []
    see = Towers.see
    monkeypatch.setattr(Towers, "see", lambda self, pixels: seen.append(len(pixels)) or see(self, pixels))
    training = train(configured(hub, "clip"), tmp_path / "run", summarize=False).training
    seen.clear()
    before = torch.random.get_rng_state()
    first = training.untrained()
    assert torch.equal(torch.random.get_rng_state(), before)
    assert training.untrained() is first
    assert sum(seen) == len(training.data.images) == 24


def test_an_audit_of_pairs_the_towers_did_not_learn_asks_them_too(hub, tmp_path, monkeypatch):
    train(configured(hub, "clip"), tmp_path / "run")
    asked = []
    monkeypatch.setattr(audits, "judge", lambda *_, more_evidence, **__: asked.append(more_evidence))
    run = load_run(tmp_path / "run")
    audits.audit(run, split="dev", folds=0)
    audits.audit(run, folds=0)
    others, own = asked
    assert own is None, "as of a head"
    every = np.arange(8)
    said = others(every, every, np.ones(8))
    vectors = open_split(with_features(run.config.data.model_copy(update={"live": False})), "dev")
    frozen = untrained_vectors(vectors)
    assert said.shape == (8, 2)
    assert said[:, 1] == pytest.approx(
        -(centred(torch.from_numpy(frozen.joint)) * centred(torch.from_numpy(frozen.texts))).sum(1), abs=1e-4
    )
