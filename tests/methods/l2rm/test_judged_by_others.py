"""Pairs judged by all others: what is asked of a run, what comes of it, and that nothing of it is lost."""

import numpy as np
import pytest
import torch

from mispair.functional.detection import auroc
from mispair.methods.l2rm import L2RM, L2RMConfig
from mispair.methods.l2rm.judged_by_others import OthersSplit
from mispair.models import build_model
from mispair.models.vse import VSEConfig
from mispair.types import Untrained
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
        run.image_of, shared = np.arange(len(data)), run.untrained()
        run.untrained = lambda: Untrained(shared.images[data.table.image_rows], shared.texts)
    return L2RM(L2RMConfig(warmup_epochs=1, **values), lambda: net, BATCH), run


class TellingRun:
    """Vectors of images that say what the text should be, except of mismatched pairs."""

    def __init__(self, pairs=500, rate=0.4):
        rng = np.random.default_rng(0)
        self.pairs, self.image_of = pairs, np.arange(pairs)
        self.wrong = rng.random(pairs) < rate
        meaning = rng.normal(size=(pairs, 8))
        shown = meaning.copy()
        shown[self.wrong] = meaning[np.roll(np.flatnonzero(self.wrong), 1)]
        described = meaning + 0.5 * rng.normal(size=(pairs, 8))
        self.vectors = Untrained(shown.astype(np.float32), described.astype(np.float32))
        self.known, self.notes = None, []

    def untrained(self):
        return self.vectors

    def note(self, sentence):
        self.notes.append(sentence)


def test_mismatched_pairs_are_found_and_their_rate_too():
    run, judge = TellingRun(), OthersSplit(0.5, 32)
    judge.ask(run)
    split = judge.divide(run)
    assert auroc(split.p_mismatch, run.wrong) > 0.98
    assert abs(split.p_mismatch.mean() - run.wrong.mean()) < 0.08
    assert (split.mismatched == run.wrong).mean() > 0.93
    assert set(judge.columns()) == {"signal", "repaired"}


def test_what_was_said_survives_a_stop():
    run, judge = TellingRun(), OthersSplit(0.5, 32)
    judge.ask(run)
    again = OthersSplit(0.5, 32)
    again.restore(judge.state())
    assert np.array_equal(again.divide(run).p_mismatch, judge.divide(run).p_mismatch)
    assert np.array_equal(again.columns()["repaired"], judge.columns()["repaired"])
    never_asked = OthersSplit(0.5, 32)
    never_asked.restore(OthersSplit(0.5, 32).state())
    assert never_asked.said is None


@pytest.mark.parametrize("lost", ["suspicion", "repaired", "p_mismatch", "interval"])
def test_a_state_that_lacks_what_was_said_is_not_taken_up(lost):
    """The trainer calls such a file damaged: later it would be in the middle of an epoch."""
    judge = OthersSplit(0.5, 32)
    judge.ask(TellingRun())
    state = {name: said for name, said in judge.state().items() if name != lost}
    with pytest.raises(KeyError, match=lost):
        OthersSplit(0.5, 32).restore(state)


def test_a_pair_known_to_be_wrong_teaches_the_others_nothing():
    run = TellingRun()
    asked, told = OthersSplit(0.5, 32), OthersSplit(0.5, 32)
    asked.ask(run)
    run.known = np.where(run.wrong, 1, -1).astype(np.int8)
    told.ask(run)
    right = ~run.wrong
    assert told.said["suspicion"][right].mean() < asked.said["suspicion"][right].mean()
    assert (told.divide(run).p_mismatch[run.wrong] == 1).all()


def test_without_vectors_nobody_can_say_and_that_is_told(data):
    method, run = make(data)
    run.untrained = lambda: None
    for epoch in range(2):
        method.epoch(epoch, run)
    assert any("no vectors are there to judge by" in note for note in run.notes)
    assert "repaired" not in run.columns


@pytest.mark.parametrize("alone", [True, False])
def test_the_warm_up_counts_a_pair_as_far_as_the_others_trust_it(data, alone):
    method, run = make(data, alone=alone, siblings={"weight": 0.0, "halves": 0.0})
    run.sweep = lambda step, **streams: None
    method.epoch(0, run)
    trust = method.identification.trust
    assert torch.allclose(trust, 1 - torch.from_numpy(method.identification.others.said["p_mismatch"]).float())
    batch = data.batch(np.arange(BATCH))
    method._warm_up(run, batch)
    losses = method._loss("infonce_rce", *run.encode(method.net, batch)).detach()
    weight = trust[:BATCH]
    assert run.losses[-1] == pytest.approx(float((weight * losses).sum() / weight.sum()), rel=1e-5)


def test_the_paper_asks_nobody(data):
    torch.manual_seed(0)
    net = build_model(VSEConfig(embed=32, word_dim=16, words="bag"), input_sizes(data))
    method, run = L2RM(L2RMConfig.paper(), lambda: net, BATCH), RecordingRun(data, BATCH)
    run.untrained = None  # calling it would raise
    method.epoch(0, run)
    assert method.identification.trust is None


def test_where_images_have_one_text_every_pair_trains_as_far_as_it_is_trusted(data):
    method, run = make(data)
    for epoch in range(2):
        method.epoch(epoch, run)
    assert run.streams[-1]["matched"] is None
    assert {"signal", "repaired", "posterior", "mismatched"} <= set(run.columns)
    assert np.allclose(method.identification.trust.numpy(), 1 - run.columns["posterior"])


@pytest.mark.parametrize("when", ["always", "auto", "never"])
def test_where_images_have_several_texts_the_losses_divide(data, when, monkeypatch):
    monkeypatch.setattr(
        "mispair.methods.l2rm.identification._FAR_OFF", 1.0
    )  # two epochs teach too little to be believed
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


def test_a_split_that_finds_nobody_is_told(data):
    method, run = make(data)
    method.epoch(0, run)
    method.identification.others.said["p_mismatch"][:] = 0.0
    method.epoch(1, run)
    assert any("no pair can be told to be mismatched" in note for note in run.notes)
