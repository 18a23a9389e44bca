import numpy as np
import pytest

from mispair.functional.loss_split import split_losses, trust_at_least, with_known, with_rate_between
from mispair.functional.mixture import decide_mismatched, fit_gaussian_mixture
from mispair.types import Split


def test_the_split_is_the_mixture_s_decision():
    rng = np.random.default_rng(0)
    wrong = rng.random(2003) < 0.4
    losses = np.where(wrong, rng.beta(9, 5, 2003), rng.beta(2, 12, 2003))
    split, fit = split_losses(losses, "gaussian", at_least=7)
    again = fit_gaussian_mixture(losses)
    assert fit == again
    assert np.array_equal(split.p_mismatch, again.posterior_mismatched(losses))
    assert np.array_equal(split.mismatched, decide_mismatched(again, losses))
    assert (split.mismatched == wrong).mean() > 0.95


def test_where_too_few_are_left_the_smallest_losses_are_trusted():
    losses = np.array([0.5, 0.1, 0.9, 0.3, 0.7])
    assert trust_at_least(np.ones(5, bool), losses, 2).tolist() == [True, False, True, False, True]
    kept = np.array([False, True, True, False, True])
    assert trust_at_least(kept, losses, 2) is kept


@pytest.mark.parametrize(("rate", "nobody"), [(0.1, True), (0.5, False)])
def test_a_tail_accuses_nobody_and_a_large_overlapping_group_does(rate, nobody):
    rng = np.random.default_rng(1)
    n = 5003
    if nobody:
        losses = rng.lognormal(0, 0.5, n)  # one skewed group
    else:
        losses = np.where(rng.random(n) < rate, rng.normal(1.5, 1, n), rng.normal(0, 1, n))
    split, fit = split_losses(losses, "gaussian", 7, when_unimodal="none_if_tail")
    assert fit.apart < 2
    assert fit.is_tail is nobody
    assert (not split.mismatched.any()) is nobody


def test_what_is_known_stands_above_the_split():
    split = Split(np.array([0.1, 0.9, 0.6, 0.2, 0.7]), np.array([False, True, True, False, True]))
    assert with_known(split, None, 1) is split
    after = with_known(split, np.array([1, 0, -1, -1, -1], np.int8), 2)
    assert after.p_mismatch.tolist() == [1, 0, 0.6, 0.2, 0.7]
    assert after.mismatched.tolist() == [True, False, True, False, True]
    short = with_known(split, np.array([1, 1, -1, -1, -1], np.int8), 3)
    assert short.mismatched.tolist() == [True, True, False, False, False], "known mismatched pairs are trusted last"


def test_who_is_known_to_be_mismatched_is_the_last_to_be_trusted() -> None:
    """Where too few are left, somebody suspicious is trusted before somebody people called mismatched."""
    split = Split(np.ones(4), np.ones(4, bool))
    trusted = with_known(split, np.array([1, -1, 1, -1], np.int8), at_least=2)
    assert trusted.mismatched.tolist() == [True, False, True, False]


def test_probabilities_move_to_the_nearer_end_of_the_interval():
    p = np.array([0.2, 0.5, 0.8])
    assert with_rate_between(p, 0.4, 0.6) is p, "their mean is there already"
    lower = with_rate_between(p, 0.1, 0.3)
    assert lower.mean() == pytest.approx(0.3, abs=1e-6)
    odds, before = lower / (1 - lower), p / (1 - p)
    assert odds / before == pytest.approx((odds / before)[0]), "all odds by one number"
    assert with_rate_between(p, 0.7, 0.9).mean() == pytest.approx(0.7, abs=1e-6)


@pytest.mark.parametrize("end", [0.0, 0.001, 0.3, 0.999, 1.0])
def test_certain_probabilities_can_be_moved_and_their_order_stays(end):
    rng = np.random.default_rng(0)
    p = np.concatenate([np.zeros(211), rng.beta(0.3, 0.3, 601), np.ones(199)])
    moved = with_rate_between(p, end, end)
    assert moved.mean() == pytest.approx(end, abs=1e-4)
    assert (np.diff(moved[np.argsort(p, kind="stable")]) >= 0).all()
    assert ((moved >= 0) & (moved <= 1)).all()
