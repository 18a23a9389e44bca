"""What the trial of rematching says before anybody knows the truth, against the truth."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

import mispair
from mispair.auditing.fixing.actions import plan_fix
from mispair.auditing.fixing.expectation import expect
from mispair.auditing.proposal_trial import _by_weight, _present, _units, _without_texts
from mispair.auditing.space import Space
from tests.auditing.planted import planted


@cache
def audited(noise, lost=0.0, rate=0.4, pairs=1499):
    """Verdicts on planted pairs, a `lost` share of whose mismatched captions belong to nobody; and what is right."""
    a, b, wrong, belongs = planted(pairs=pairs, rate=rate, noise=noise)
    gone = np.random.default_rng(1).permutation(np.flatnonzero(wrong))[: int(lost * wrong.sum())]
    b[gone] = planted(pairs=pairs, rate=0.0, noise=noise, seed=5)[1][gone]
    verdicts = mispair.quick_audit(a, b)
    partner = verdicts.table["proposed_caption_pair"].fill_null(-1).to_numpy()
    right = (partner >= 0) & (partner == belongs) & ~np.isin(partner, gone)
    return verdicts, wrong, right


@pytest.mark.parametrize(("noise", "lost"), [(0.3, 0.0), (0.6, 0.5), (1.0, 0.0), (1.4, 0.0)])
@pytest.mark.parametrize("action", ["drop", "rematch"])
def test_what_is_expected_comes_true(noise, lost, action):
    verdicts, wrong, right = audited(noise, lost)
    plan = plan_fix(verdicts, action)
    expected = expect(verdicts, plan)
    changed = plan.kept != plan.caption_of
    left = np.where(changed, ~right[plan.kept], wrong[plan.kept])
    assert expected.wrong == pytest.approx(left.mean(), abs=0.08)
    assert expected.replaced == changed.sum()
    if action == "rematch":
        assert expected.true == pytest.approx(right[plan.kept[changed]].mean(), abs=0.2)


def test_a_higher_weight_is_expected_to_be_better():
    verdicts, _, right = audited(1.0)
    some, all_ = (plan_fix(verdicts, "rematch", min_weight=w) for w in (0.8, 0.0))
    assert expect(verdicts, some).true > expect(verdicts, all_).true + 0.1
    heavy = verdicts.column("proposed_caption_weight") >= 0.8
    assert right[heavy].mean() > right[verdicts.is_mismatch_issue].mean()


def test_lost_captions_are_noticed():
    trial = audited(0.6, 0.5)[0].facts.rematch
    assert trial.present == pytest.approx(0.5, abs=0.15)
    assert audited(0.6, 0.0)[0].facts.rematch.present > 0.9


def test_the_share_that_is_there_by_hand():
    moved, lost = np.tile([0.8, 1.0], 5000), np.tile([0.0, 0.2], 5000)
    assert _present(np.tile([0.4, 0.6], 99), moved, lost) == pytest.approx(0.5, abs=1e-3)
    assert _present(np.zeros(0), moved, lost) == 1.0
    assert _present(np.zeros(9), moved, moved) == _present(np.zeros(9), lost, moved) == 1.0, "nothing tells them apart"
    assert _present(np.zeros(9), np.array([1.0, 0.9, 1.0]), np.array([0.9, 0.5, 1.0])) > 0.5, "few hardly do"


def test_what_is_moved_is_mixed_up_as_the_data_is():
    images = np.random.default_rng(0).permutation(np.repeat(np.arange(200), 3))
    whole = (images % 4 == 0).astype(float)
    single = np.zeros(600)
    single[np.unique(images, return_index=True)[1][:80]] = 1  # one pair of each of 80 images
    for wrong, shape, together in ((whole, (150, 3), True), (single, (120, 1), False)):
        units, at_once = _units(images, wrong)
        assert (units.shape, at_once) == (shape, together)
        assert (images[units] == images[units[:, :1]]).all()
        assert len(np.unique(units)) == units.size
        assert not np.isin(images[units], images[wrong > 0]).any(), "nothing of these images lies elsewhere"
    everywhere = np.zeros(600)
    everywhere[np.unique(images, return_index=True)[1]] = 1  # of every image one
    units, _ = _units(images, everywhere)
    assert units.shape == (400, 1)
    assert not everywhere[units].any()


@pytest.mark.parametrize("together", [True, False])
def test_several_captions_of_a_picture(together):
    """Pictures that lost all captions at once, or pairs that lost one: what is expected comes true."""
    rng = np.random.default_rng(3)
    meaning = rng.normal(size=(700, 24))
    image = np.repeat(np.arange(700), 3)
    texts = meaning[image] + 1.1 * rng.normal(size=(2100, 24))
    unit = image if together else np.arange(2100)
    wrong = np.isin(unit, rng.permutation(unit.max() + 1)[: 2 * (unit.max() + 1) // 5])
    shown = np.flatnonzero(wrong)
    texts[shown] = texts[np.roll(shown, 3)]
    belongs = image.copy()
    belongs[shown] = image[np.roll(shown, 3)]
    verdicts = mispair.quick_audit(meaning[image], texts, image_ids=[f"{k}.png" for k in image])
    plan = plan_fix(verdicts, "rematch")
    changed = plan.kept != plan.caption_of
    right = belongs[plan.caption_of[changed]] == image[plan.kept[changed]]
    assert changed.sum() > 200
    assert expect(verdicts, plan).true == pytest.approx(right.mean(), abs=0.12)


def test_true_by_weight_by_hand():
    home, astray, wrong = np.full(30, 0.9), np.full(10, 0.3), np.full(20, 0.3)
    levels, true_at = _by_weight(home, astray, wrong, 1.0)
    assert np.interp([0.3, 0.9], levels, true_at) == pytest.approx([0.0, 1.0])
    levels, true_at = _by_weight(np.full(30, 0.5), np.zeros(0), np.full(30, 0.5), 0.25)
    assert true_at == pytest.approx([0.25])
    assert [len(part) for part in _by_weight(np.zeros(0), np.zeros(0), np.zeros(0), 1.0)] == [0, 0]


def test_too_few_pairs_say_nothing():
    assert audited(0.3, pairs=101)[0].facts.rematch is None


def test_texts_that_are_taken_away_are_gone_for_every_score():
    rng = np.random.default_rng(0)
    vectors = torch.from_numpy(rng.normal(size=(9, 4)).astype(np.float32))
    product = (vectors @ vectors.T).numpy()
    gone, instead = np.array([2, 5]), np.array([7, 8])
    plain = _without_texts(Space(vectors, vectors), gone, instead)
    rows, cols = np.array([2, 5, 1]), np.array([2, 5, 3])
    there = np.array([7, 8, 3])
    assert plain.score(rows, cols) == pytest.approx(product[rows, there], abs=1e-5)
    lists = torch.zeros(9, 3), torch.tensor([[2, 3, 4]] * 9)
    fine = Space(vectors, vectors, lambda r, c, why: product[r, c] + 100, (lists, lists))
    without = _without_texts(fine, gone, instead)
    assert without.score(rows, cols) == pytest.approx(product[rows, there] + 100, abs=1e-4)
    assert without.shortlists is not None
    assert torch.isinf(without.shortlists[0][0][:, 0]).all(), "what is gone is on nobody's shortlist"
    assert torch.isfinite(without.shortlists[0][0][:, 1:]).all()
