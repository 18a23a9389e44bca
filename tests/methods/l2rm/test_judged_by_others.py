"""Pairs judged by all others: what is asked of a run, what comes of it, and that nothing of it is lost."""

import numpy as np
import pytest
import torch

from mispair.functional.detection import auroc
from mispair.methods.l2rm import L2RM, L2RMConfig
from mispair.methods.l2rm.judged_by_others import WIDEST, OthersSplit
from mispair.models import build_model
from mispair.models.vse import VSEConfig
from mispair.types import PairBatch
from mispair.workflows.assemble import input_sizes
from tests.synthetic import RecordingRun, tiny_data

BATCH = 32


@pytest.fixture(scope="module")
def data():
    return tiny_data(rate=0.5)


def make(data, alone=True, **values):
    torch.manual_seed(0)
    net = build_model(VSEConfig(embed=32, word_dim=16, words="bag"), input_sizes(data))
    run = RecordingRun(data, BATCH)
    if alone:  # as if every pair showed an image of its own
        run.image_of = np.arange(len(data))
    return L2RM(L2RMConfig(warmup_epochs=1, **values), lambda: net, BATCH), run


class TellingRun:
    """Image features that say what the text should be, except of mismatched pairs."""

    def __init__(self, pairs=500, rate=0.4):
        rng = np.random.default_rng(0)
        self.pairs, self.image_of = pairs, np.arange(pairs)
        self.wrong = rng.random(pairs) < rate
        meaning = rng.normal(size=(pairs, 8))
        shown = meaning.copy()
        shown[self.wrong] = meaning[np.roll(np.flatnonzero(self.wrong), 1)]
        self.columns = {"features": shown, "described": meaning + 0.5 * rng.normal(size=(pairs, 8))}
        self.kept, self.known = None, None

    def once(self, compute):
        self.kept = compute() if self.kept is None else self.kept
        return self.kept


def test_mismatched_pairs_are_found_and_their_rate_too():
    run, judge = TellingRun(), OthersSplit(0.5, 0.5, 32)
    split = judge.divide(run, run.columns)
    assert auroc(split.p_mismatch, run.wrong) > 0.98
    assert abs(split.p_mismatch.mean() - run.wrong.mean()) < 0.08
    assert (split.mismatched == run.wrong).mean() > 0.93
    assert set(judge.columns()) == {"signal", "repaired"}


def test_the_second_epoch_remembers_the_first_and_trusts_by_it():
    run, judge = TellingRun(), OthersSplit(0.5, 0.5, 32)
    judge.divide(run, run.columns)
    first, trust = judge.given.copy(), judge.trust.copy()
    assert trust[run.wrong].mean() < 0.2 < 0.8 < trust[~run.wrong].mean()
    run.kept = None
    judge.divide(run, run.columns)
    now = run.kept["given"]
    assert not np.allclose(now, first)  # the regression believed some pairs less
    assert np.allclose(judge.given, (first + now) / 2)


def test_a_run_that_goes_on_inside_an_epoch_needs_no_vectors():
    run, judge = TellingRun(), OthersSplit(0.5, 0.5, 32)
    before = judge.state()
    split = judge.divide(run, run.columns)
    again = OthersSplit(0.5, 0.5, 32)
    again.restore(before)
    repeated = again.divide(run, {})
    assert np.array_equal(split.p_mismatch, repeated.p_mismatch)
    later = OthersSplit(0.5, 0.5, 32)
    later.restore(judge.state())
    assert np.array_equal(later.given, judge.given)
    assert np.array_equal(later.trust, judge.trust)


def test_features_are_the_mean_of_the_real_regions(data):
    _, run = make(data)
    images, mask = torch.randn(2, 3, 4), torch.tensor([[True, True, False], [True, False, False]])
    batch = PairBatch(images, mask, torch.zeros(2, 1).long(), torch.ones(2, 1).bool(), torch.arange(2))
    found = OthersSplit(0.5, 0.5, 2).survey(run, batch, torch.ones(2, 5))
    assert torch.equal(found["described"], torch.ones(2, 5))
    assert torch.allclose(found["features"], torch.stack([images[0, :2].mean(0), images[1, 0]]))
    wide = PairBatch(torch.randn(2, 1, 2048), torch.ones(2, 1).bool(), batch.texts, batch.text_mask, batch.pair_ids)
    narrow = OthersSplit(0.5, 0.5, 2).survey(run, wide, torch.randn(2, 1024))
    assert [column.shape for column in narrow.values()] == [(2, WIDEST), (2, WIDEST)]
    again = OthersSplit(0.5, 0.5, 2).survey(run, wide, torch.randn(2, 1024))
    assert torch.equal(narrow["features"], again["features"])


def test_where_images_have_one_text_every_pair_trains_as_far_as_it_is_trusted(data):
    method, run = make(data)
    for epoch in range(2):
        method.epoch(epoch, run)
    assert run.streams[-1]["matched"] is None
    assert {"signal", "repaired", "posterior", "mismatched"} <= set(run.columns)
    assert np.allclose(method.identification.trust.numpy(), 1 - run.columns["posterior"])


@pytest.mark.parametrize("when", ["always", "auto", "never"])
def test_where_images_have_several_texts_the_losses_divide(data, when):
    method, run = make(data, alone=False, siblings={"when": when})
    for epoch in range(2):
        method.epoch(epoch, run)
    assert "repaired" not in run.columns
    assert method.identification.trust is None


@pytest.mark.parametrize(("evidence", "weights", "soft"), [("loss", "posterior", True), ("others", "split", False)])
def test_evidence_and_weights_are_values(data, evidence, weights, soft):
    method, run = make(data, split={"evidence": evidence, "weights": weights})
    for epoch in range(2):
        method.epoch(epoch, run)
    assert ("repaired" in run.columns) == (evidence == "others")
    assert (method.identification.trust is not None) == soft


def test_weights_decide_what_is_learned(data):
    method, run = make(data, siblings={"halves": 0.0}, rematch_weight=0.0)
    method.epoch(0, run)
    method.identification.trust = torch.zeros(len(data))
    batch = data.batch(np.arange(BATCH))
    method._matched_only(run, batch)
    assert run.losses[-1] == 0
    method.identification.trust = torch.ones(len(data))
    method._matched_only(run, batch)
    assert run.losses[-1] > 0


@pytest.mark.parametrize("alone", [True, False])
def test_halves_teach_only_where_no_text_has_siblings(data, alone):
    method, run = make(data, alone=alone)
    method.siblings.begin(run.image_of, 1)
    batch = data.batch(np.arange(BATCH))
    texts = run.encode_texts(method.net, batch)
    assert (method.siblings.loss(run, method.net, batch, texts, None) > 0) == alone
    method.siblings.half_share = 0.0
    assert method.siblings.loss(run, method.net, batch, texts, None) == 0


def test_a_split_that_says_nothing_is_told(data, monkeypatch):
    method, run = make(data, split={"evidence": "loss"})
    everybody = lambda fit, losses, *_, **__: np.ones(len(losses), bool)  # noqa: E731
    monkeypatch.setattr("mispair.functional.loss_split.decide_mismatched", everybody)
    monkeypatch.setattr("mispair.methods.l2rm.identification.NEARLY_ALL", 0.5)
    method.epoch(1, run)
    assert any("nearly all pairs look mismatched" in note for note in run.notes)


def test_a_split_that_finds_nobody_is_told(data, monkeypatch):
    method, run = make(data)
    nobody = lambda given, repaired: np.zeros(len(given))  # noqa: E731
    monkeypatch.setattr("mispair.methods.l2rm.judged_by_others.posterior_mismatched", nobody)
    method.epoch(1, run)
    assert any("no pair can be told to be mismatched" in note for note in run.notes)
