"""Proposals from the whole set without comparing all with all."""

from __future__ import annotations

import numpy as np
import pytest

from mispair.auditing.embeddings import GivenPairs
from mispair.auditing.quick import quick_audit
from mispair.progress import silent
from mispair.scale import shortlists
from mispair.scale.evidence import Measure
from mispair.scale.frame import make_frame
from mispair.scale.judge_many import AuditContext, judge_many
from mispair.scale.rematch_pieces import heaviest_first
from mispair.scale.shortlists import Texts
from mispair.scale.suspects import ManySuspects
from mispair.scale.workplace import Workplace
from tests.scale.many import vectors


@pytest.mark.parametrize("indexed", [False, True])
def test_proposals_lead_home_and_agree_with_the_audit_that_compares_all(indexed, monkeypatch):
    if indexed:
        monkeypatch.setattr(shortlists, "FEW", 300)
        monkeypatch.setattr(shortlists, "_GROUP", 20)
    data, _, belongs = vectors(2201, width=64)
    verdicts = judge_many(data, AuditContext({}))
    rows = np.arange(len(data))
    known = quick_audit(GivenPairs(data.image_vectors(rows), data.text_vectors(rows)))
    partner, wanted = (np.nan_to_num(v.column("proposed_caption_pair"), nan=-1) for v in (verdicts, known))
    there = partner >= 0
    assert there.sum() > 0.8 * 660
    assert (partner[there] == belongs[there]).mean() > 0.95
    assert (partner[wanted >= 0] == wanted[wanted >= 0]).mean() > 0.93
    image = np.nan_to_num(verdicts.column("proposed_image_pair"), nan=-1).astype(int)
    home = np.empty(len(data), int)
    home[belongs] = rows
    assert (home[image >= 0] == image[image >= 0]).mean() > 0.95


def test_a_swap_mends_both():
    data, _, _ = vectors(2000, width=64, rate=0.0)
    texts = data.texts.store.array
    for one, other in ((3, 700), (55, 1200), (901, 902)):
        texts[[one, other]] = texts[[other, one]]
    verdicts = judge_many(data, AuditContext({}))
    assert [verdicts[k].swap_with for k in (3, 700, 55, 1200, 901, 902)] == [700, 3, 1200, 55, 902, 901]
    assert verdicts[3].proposed_caption_pair == 700
    assert verdicts[3].proposed_caption_gain > 0


def test_an_image_with_several_captions_gets_as_many():
    data, _, _ = vectors(3000, per_image=3, width=64, rate=0.0)
    texts = data.texts.store.array
    ours, theirs = [30, 31, 32], [1500, 1501, 1502]
    texts[[*ours, *theirs]] = texts[[*theirs, *ours]]
    verdicts = judge_many(data, AuditContext({}))
    proposed = [verdicts[k].proposed_caption_pair for k in ours]
    assert sum(k in theirs for k in proposed) >= 2
    assert len(set(proposed) - {None}) == len([k for k in proposed if k is not None])
    assert verdicts[30].image_id == "10"


def test_few_suspects_cost_nothing():
    data, _, _ = vectors(500, rate=0.0, width=64)
    verdicts = judge_many(data, AuditContext({}))
    assert verdicts.facts.rate < 0.05
    assert verdicts.table["proposed_caption_pair"].null_count > 480


def test_shortlists_of_the_index_are_nearly_those_of_all(tmp_path, monkeypatch):
    import torch

    data, _, _ = vectors(6000, width=64)
    rows = np.arange(6000)
    a, b = (
        torch.nn.functional.normalize(torch.from_numpy(v)) for v in (data.image_vectors(rows), data.text_vectors(rows))
    )
    every = lambda r: np.ones(r.shape, bool)  # noqa: E731
    place = Workplace(tmp_path)
    assert not Texts.write(iter([b]), 6000, 64, place)
    exact, _ = Texts.load(place).search(a[:200], 10, every)
    monkeypatch.setattr(shortlists, "FEW", 100)
    monkeypatch.setattr(shortlists, "_GROUP", 20)
    assert Texts.write(iter([b[:4000], b[4000:]]), 6000, 64, place)
    texts = Texts.load(place)
    found, scores = texts.search(a[:200], 10, every)
    shared = np.mean([len(set(x) & set(y)) / 10 for x, y in zip(exact.tolist(), found.tolist(), strict=True)])
    assert shared > 0.9
    assert np.allclose(scores[:, 0], (a[:200] * b[found[:, 0]]).sum(1), atol=2e-3)
    barred, _ = texts.search(a[:200], 10, lambda r: r != found[:, :1])
    assert not (barred == found[:, :1]).any()


def test_widths_that_do_not_divide_are_searched_too(tmp_path, monkeypatch):
    import torch

    monkeypatch.setattr(shortlists, "FEW", 100)
    b = torch.nn.functional.normalize(torch.randn(3000, 37, generator=torch.Generator().manual_seed(0)))
    Texts.write(iter([b]), 3000, 37, Workplace(tmp_path))
    texts = Texts.load(Workplace(tmp_path))
    found, _ = texts.search(b[:50], 1, lambda r: np.ones(r.shape, bool))
    assert (found[:, 0] == np.arange(50)).mean() > 0.9


def test_progress_is_told():
    told = []
    judge_many(vectors(1500)[0], AuditContext({}), lambda what, done, total: told.append((what, done, total)))
    assert {what for what, _, _ in told} == {
        "measuring pairs", "shortlisting partners", "rematching", "judging proposals",
    }  # fmt: skip
    assert all(done <= total for _, done, total in told)
    silent("", 0, 0)


def test_cells_are_judged_like_given_pairs_and_those_that_score_too_little_not_at_all():
    data, _, _ = vectors(1200, per_image=3)
    measure = Measure(make_frame(data))
    rows = np.array([5, 700, 701, 5, 1100])  # one twice, two of one image
    image_rows, given = data.image_rows(rows), (data.image_vectors(rows), data.text_vectors(rows))
    known = measure.of(rows, image_rows, *given)
    least = known.score + np.array([-1, -1, 1, -1, -1], np.float32)
    score, better, evidence = measure.cells(rows, image_rows, *given, least)
    assert better.tolist() == [0, 1, 3, 4]
    assert np.allclose(score, known.score, atol=1e-6)
    assert np.allclose(evidence, known.evidence[better, :3], atol=1e-5)
    _, nobody, nothing = measure.cells(rows, image_rows, *given, score + 1)
    assert len(nobody) == len(nothing) == 0


def test_an_image_holds_as_many_suspects_as_it_shows():
    data, _, _ = vectors(12, per_image=3)
    p = np.array([0.9, 0.1, 0.3, 0, 0, 0, 0.6, 0.7, 0.8, 0.1, 0.1, 0.9])
    suspects = ManySuspects.among(data, p)
    assert suspects.pairs.tolist() == [0, 2, 6, 7, 8, 11]
    assert suspects.pairs[suspects.of_images(np.array([0, 1]))].tolist() == [0, 2, 8, 7, 6]
    assert suspects.pairs[suspects.of_images(np.array([2]))].tolist() == [11]


def test_the_heaviest_cell_of_a_text_is_taken_and_of_equal_ones_the_first():
    text, weight = np.array([4, 2, 4, 2, 9]), np.array([0.3, 0.5, 0.8, 0.5, 0.1])
    assert heaviest_first(text, weight).tolist() == [1, 2, 4]
