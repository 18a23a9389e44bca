"""Which pairs L2RM takes for mismatched, from losses of one group, of two, or all alike."""

import numpy as np

from mispair.functional.image_groups import shrink_to_groups
from mispair.functional.mixture import fit_gaussian_mixture
from tests.methods.l2rm.samples import BATCH, make


def test_nobody_mismatched_trains_on_the_matched_alone(data, monkeypatch):
    method, run = make(data)
    monkeypatch.setattr(
        "mispair.functional.loss_split.decide_mismatched", lambda fit, losses, *_, **__: np.zeros(len(losses), bool)
    )
    method.epoch(1, run)
    assert list(run.streams[0]) == ["matched"]
    assert run.updates == ["net"]


def test_one_group_of_losses_accuses_nobody(data):
    skewed = np.random.default_rng(0).lognormal(0, 1.2, len(data))
    for when_unimodal, streams in (("none_if_tail", ["matched"]), ("posterior", ["matched", "mismatched"])):
        method, run = make(data, split={"when_unimodal": when_unimodal})
        survey = run.survey
        run.survey = lambda score, passing, survey=survey: {**survey(score, passing), "loss": skewed}
        method.epoch(1, run)
        assert [name for name in run.streams[0] if "siblings" not in name] == streams
        assert (run.logged["rate"] == 0) is (when_unimodal == "none_if_tail")


def test_two_groups_that_overlap_are_not_taken_for_one(data):
    rng = np.random.default_rng(0)
    method, run = make(data)
    survey = run.survey
    overlapping = np.where(data.table.truth.mismatched, rng.beta(4, 6, len(data)), rng.beta(3, 7, len(data)))
    run.survey = lambda score, passing: {**survey(score, passing), "loss": overlapping}
    assert fit_gaussian_mixture(shrink_to_groups(overlapping, data.table.image_rows)).apart < 2
    method.epoch(1, run)
    assert "mismatched" in run.streams[0]


def test_everybody_mismatched_still_trusts_a_batch(data, monkeypatch):
    method, run = make(data)
    monkeypatch.setattr(
        "mispair.functional.loss_split.decide_mismatched", lambda fit, losses, *_, **__: np.ones(len(losses), bool)
    )
    method.epoch(1, run)
    matched = run.streams[0]["matched"]
    assert len(matched) == BATCH
    signal = run.columns["signal"]  # they are the least suspicious
    assert signal[matched].max() <= np.delete(signal, matched).min()


def test_equal_losses_do_not_break_the_split(data, monkeypatch):
    method, run = make(data)
    survey = run.survey
    equal = {"loss": np.full(len(data), 0.4)}
    monkeypatch.setattr(run, "survey", lambda score, passing: {**survey(score), **equal})
    method.epoch(1, run)
    assert run.updates == ["net"]


def test_the_loss_is_averaged_over_epochs(data, monkeypatch):
    method, run = make(data, split={"history": 0.5})
    found = iter([np.linspace(0, 1, len(data)), np.linspace(1, 0, len(data))])
    survey = run.survey
    monkeypatch.setattr(run, "survey", lambda score, passing: {**survey(score), "loss": next(found)})
    method.epoch(1, run)
    method.epoch(2, run)
    assert np.allclose(method.identification.losses.losses, 0.5)
