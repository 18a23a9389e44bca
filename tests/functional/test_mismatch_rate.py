"""The mismatch rate: known mixtures, weak and useless judges, rates at the ends, few pairs, images wrong together."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from mispair.errors import InputError
from mispair.functional import mismatch_rate
from mispair.functional.detection import auroc, calibration_error
from mispair.functional.mismatch_rate import (
    _EDGES,
    _NARROWING,
    _SHAPES,
    _STRENGTHS,
    _family,
    design_effect_of,
    estimate_mismatch,
    normal_scores,
)


def planted(rate, strength, pairs, seed=0, width=0.9, opaque=0.0):
    """Normal scores with known mismatches; an `opaque` share of the matched looks exactly mismatched."""
    rng = np.random.default_rng(seed)
    wrong = rng.random(pairs) < rate
    looks = wrong | (rng.random(pairs) < opaque)
    return np.where(looks, rng.normal(size=pairs), rng.normal(-strength, width, pairs)), wrong


def judged(rate, strength, pairs, **more):
    scores, wrong = planted(rate, strength, pairs, **more)
    return estimate_mismatch(scores, np.arange(pairs)), scores, wrong


def test_normal_scores_by_hand():
    found = normal_scores(np.array([-9.0, 1.5, 2.0, 9.0]), np.array([3.0, 1.0, 2.0]))
    shares = np.array([0.5, 1.5, 2.0, 3.5]) / 4  # below, between, tied with the middle one, above
    from statistics import NormalDist

    assert found.tolist() == pytest.approx([NormalDist().inv_cdf(share) for share in shares])


def test_normal_scores_forget_the_scale():
    rng = np.random.default_rng(0)
    given, repaired = rng.normal(size=101), rng.normal(size=499)
    assert np.array_equal(normal_scores(given, repaired), normal_scores(np.exp(given), np.exp(repaired)))


@pytest.mark.parametrize(("strength", "width"), [(1.6, 0.95), (1.6, 0.8), (1.3, 1.0)])
@pytest.mark.parametrize("rate", [0.1, 0.3])
def test_matched_pairs_that_are_all_alike_hide_no_mismatches(rate, strength, width):
    """The family takes a weak judge's pairs for more different than these are, and so mismatched ones for matched."""
    draws = [judged(rate, strength, 3600, width=width, seed=seed)[::2] for seed in range(20)]
    held = [found.low - 0.0025 <= wrong.mean() <= found.high + 0.0025 for found, wrong in draws]
    assert np.mean(held) >= 0.95


@pytest.mark.parametrize("pairs", [503, 6007])
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.2, 0.4, 0.6, 0.8])
def test_a_strong_judge_knows_the_rate(rate, pairs):
    found, scores, wrong = judged(rate, 2.5, pairs)
    assert found.low <= wrong.mean() <= found.high
    assert found.high - found.low < (0.15 if pairs > 3000 else 0.2)
    assert found.conclusive
    p = found.p_mismatch(scores)
    assert calibration_error(p, wrong) < (0.05 if pairs > 3000 else 0.08)
    assert abs(p.mean() - found.rate) < 0.01


def test_the_interval_of_a_weak_judge_holds_the_truth():
    covered = []
    for rate in (0.0, 0.2, 0.4, 0.8):
        for strength in (0.7, 1.0, 1.4, 2.0):
            for seed in range(4):
                found, _, wrong = judged(rate, strength, 1009, seed=seed)
                covered.append(found.low - 0.0025 <= wrong.mean() <= found.high + 0.0025)
    assert np.mean(covered) >= 0.85


@pytest.mark.parametrize("rate", [0.0, 0.4, 1.0])
def test_a_useless_judge_cannot_tell(rate):
    found, scores, _ = judged(rate, 0.0, 4001, width=1.0)
    assert not found.conclusive
    assert (found.low, found.high) == (0.0, 1.0)
    assert found.p_mismatch(scores).max() < 0.99


def test_a_weak_judge_of_clean_pairs_does_not_call_them_wrong():
    found, scores, _ = judged(0.0, 0.8, 2003, width=1.0)
    assert found.low == 0.0
    assert (found.p_mismatch(scores) > 0.9).mean() < 0.01


def test_matched_pairs_that_look_mismatched_are_allowed_for():
    """Five of a hundred captions describe nothing: the interval still holds the rate, and nobody is called certain."""
    found, scores, wrong = judged(0.2, 2.5, 4001, opaque=0.05)
    assert found.low <= wrong.mean() <= found.high
    sure = found.p_mismatch(scores) >= 0.99
    assert wrong[sure].mean() >= 0.95 if sure.any() else True


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.3])
def test_a_judge_that_looks_perfect_allows_for_captions_that_say_nothing(rate):
    """How well the other pairs are told apart says nothing of the five in a hundred whose captions describe nothing."""
    found, _, wrong = judged(rate, 3.0, 4001, opaque=0.05)
    assert found.low <= wrong.mean() <= found.high
    assert found.high - found.low < 0.15


def test_allowing_for_captions_that_say_nothing_widens_the_interval_downwards_only(monkeypatch):
    widened = [judged(rate, 3.0, 1009)[0] for rate in (0.1, 0.4, 0.8)]
    monkeypatch.setattr(mismatch_rate, "_FEWEST_OPAQUE_LOW", mismatch_rate._FEWEST_OPAQUE)
    before = [judged(rate, 3.0, 1009)[0] for rate in (0.1, 0.4, 0.8)]
    assert [found.high for found in widened] == [found.high for found in before]
    assert all(a.low <= b.low for a, b in zip(widened, before, strict=True))
    assert widened[0].low < before[0].low


def test_certain_pairs_are_wrong():
    found, scores, wrong = judged(0.6, 3.2, 6007)
    sure = found.p_mismatch(scores) >= 0.99
    assert sure.sum() > 500
    assert wrong[sure].mean() > 0.98


def test_the_separation_is_the_auroc_nobody_can_measure():
    found, scores, wrong = judged(0.3, 2.0, 6007)
    assert found.separation == pytest.approx(auroc(scores, wrong), abs=0.03)


def test_p_never_falls_with_the_score():
    for rate, strength, width in ((0.4, 3.0, 0.5), (0.1, 1.0, 1.0), (0.8, 2.0, 0.7)):
        found, _, _ = judged(rate, strength, 2003, width=width)
        p = found.p_mismatch(np.linspace(-6, 6, 997))
        assert (np.diff(p) >= 0).all()
        assert p.min() >= 0
        assert p.max() <= 1


def test_images_that_are_wrong_together_widen_the_interval():
    rng = np.random.default_rng(0)
    wrong = np.repeat(rng.random(401) < 0.4, 5)
    scores = rng.normal(np.where(wrong, 0, -2.5))
    together = estimate_mismatch(scores, np.repeat(np.arange(401), 5))
    alone = estimate_mismatch(scores, np.arange(2005))
    assert together.high - together.low > 1.15 * (alone.high - alone.low)


def test_few_pairs_make_it_modest():
    found, _, wrong = judged(0.5, 2.0, 23)
    assert found.low <= wrong.mean() <= found.high
    assert found.high - found.low > 0.3


def test_a_judge_that_leaves_nothing_open_knows_the_rate_of_few_pairs():
    """It is asked how many of these pairs are wrong, not of all that could have been drawn."""
    wrong = np.arange(211) < 80
    found = estimate_mismatch(np.where(wrong, np.random.default_rng(0).normal(size=211), -4.0), np.arange(211))
    assert found.low <= wrong.mean() <= found.high
    assert found.high - found.low < 0.1  # as many drawn at random would vary by .13


def test_matched_pairs_that_differ_much_are_no_mismatches():
    """Most are beyond doubt, some nearly random."""
    off = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        wrong = rng.random(2003) < 0.3
        strength = rng.gamma(2.0, 1.5, 2003)
        scores = np.where(wrong, rng.normal(size=2003), rng.normal(-strength))
        found = estimate_mismatch(scores, np.arange(2003))
        assert found.low <= wrong.mean() <= found.high
        off.append(found.rate - wrong.mean())
    assert abs(np.mean(off)) < 0.03


@pytest.mark.parametrize(
    ("sizes", "ones", "effect"),
    [
        ([1, 1, 1, 1], [1, 0, 0, 1], 1.0),  # alone
        ([2, 2], [2, 0], 2.0),  # two by two
        ([5, 5, 5, 5], [5, 0, 5, 0], 5.0),
        ([2, 2], [1, 1], 1.0),  # varying less than alone is no reason to count more pairs than there are
        ([3, 3], [3, 3], 1.0),  # nothing varies
    ],
)
def test_the_design_effect_by_hand(sizes, ones, effect):
    assert design_effect_of(np.array(sizes), np.array(ones)) == pytest.approx(effect)


@pytest.mark.parametrize("strength", [0.3, 1.8, 3.0, 6.0])
@pytest.mark.parametrize("shape", _SHAPES)
@pytest.mark.parametrize("narrowing", _NARROWING)
def test_a_member_of_the_family_is_what_drawing_from_it_gives(strength, shape, narrowing):
    at = int(np.abs(_STRENGTHS - strength).argmin()) * len(_SHAPES) + _SHAPES.index(shape)
    family, separations = (values[..., 1 + at * len(_NARROWING) + _NARROWING.index(narrowing)] for values in _family())
    rng = np.random.default_rng(0)
    drawn = -rng.gamma(shape, strength / shape, 50_000) + max(0.5, 1 - narrowing * strength) * rng.normal(size=50_000)
    shares = np.bincount(np.searchsorted(_EDGES, drawn), minlength=len(_EDGES) + 1) / len(drawn)
    assert np.abs(shares - family).max() < 0.012
    assert family.sum() == pytest.approx(1)
    random = rng.normal(size=50_000)
    assert separations == pytest.approx((drawn.clip(-2.4) < random.clip(-2.4)).mean(), abs=0.02)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: normal_scores(np.array([0.0, np.nan]), np.zeros(3)), "finite"),
        (lambda: normal_scores(np.zeros(3), np.zeros(0)), "one value per pair"),
        (lambda: estimate_mismatch(np.zeros(3), np.zeros(4, np.int64)), "groups"),
    ],
)
def test_unusable_input_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_the_many_explanations_of_few_pairs_are_not_spread_out_over_all_rates_at_once():
    """24 pairs leave fifteen thousand explanations open: by 201 rates, 24 MB an array."""
    scores, _ = planted(0.3, 2.0, 24)
    _family()  # made once, kept
    tracemalloc.start()
    try:
        estimate_mismatch(scores, np.arange(24))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 30e6
