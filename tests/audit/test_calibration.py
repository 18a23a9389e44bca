"""Probabilities from re-pairing: a case by hand, known mixtures, and what a memory of past losses may change."""

from __future__ import annotations

import numpy as np
import pytest

from mispair.audit.calibration import _never_falling, calibrate
from mispair.functional.detection import auroc, calibration_error


def mixture(rate, pairs=4003, shift=3.0, seed=0):
    rng = np.random.default_rng(seed)
    wrong = rng.random(pairs) < rate
    given = np.column_stack([rng.normal(np.where(wrong, 0, -shift)), rng.normal(size=pairs)])
    repaired = rng.normal(size=(2 * pairs, 2))
    return given, repaired, wrong


@pytest.mark.parametrize("rate", [0.02, 0.2, 0.4, 0.8])
def test_the_rate_and_the_probabilities_of_a_known_mixture(rate):
    given, repaired, wrong = mixture(rate)
    found = calibrate(given, repaired, np.arange(len(given)))
    assert abs(found.rate - wrong.mean()) < 0.03
    assert found.rate_low <= found.rate <= found.rate_high
    assert found.rate_high - found.rate_low < 0.1
    assert calibration_error(found.p_mismatch, wrong) < 0.03
    assert auroc(found.p_mismatch, wrong) > 0.97
    assert found.apart


def test_the_posterior_is_that_of_the_two_normals():
    given, repaired, _ = mixture(0.4, pairs=20011)
    found = calibrate(given, repaired, np.arange(len(given)))
    x = given[:, 0]
    matched, mismatched = 0.6 * np.exp(-((x + 3) ** 2) / 2), 0.4 * np.exp(-(x**2) / 2)
    assert np.abs(found.p_mismatch - mismatched / (matched + mismatched)).mean() < 0.02


def test_clean_pairs_are_not_accused_and_random_ones_are_not_trusted():
    given, repaired, _ = mixture(0.0)
    clean = calibrate(given, repaired, np.arange(len(given)))
    assert clean.rate < 0.01
    assert (clean.p_mismatch > 0.5).sum() <= 3
    assert clean.apart
    given, repaired, _ = mixture(1.0)
    hopeless = calibrate(given, repaired, np.arange(len(given)))
    assert hopeless.rate > 0.9
    assert not hopeless.apart


def test_history_reorders_and_keeps_the_probabilities():
    given, repaired, wrong = mixture(0.4, shift=1.5)
    alone = calibrate(given, repaired, np.arange(len(given)))
    past = wrong + 0.5 * np.random.default_rng(1).normal(size=len(wrong))
    both = calibrate(given, repaired, np.arange(len(given)), past)
    assert auroc(both.p_mismatch, wrong) > auroc(alone.p_mismatch, wrong) + 0.03
    assert both.rate == alone.rate
    assert np.allclose(np.sort(both.p_mismatch), np.sort(alone.p_mismatch))


def test_images_that_are_wrong_together_widen_the_interval():
    rng = np.random.default_rng(0)
    wrong = np.repeat(rng.random(401) < 0.4, 5)
    given = rng.normal(np.where(wrong, 0, -3.0))[:, None]
    repaired = rng.normal(size=(4001, 1))
    together = calibrate(given, repaired, np.repeat(np.arange(401), 5))
    apart = calibrate(given, repaired, np.arange(2005))
    assert together.rate == apart.rate
    assert together.rate_high - together.rate_low > 1.25 * (apart.rate_high - apart.rate_low)


def test_never_falling_by_hand():
    found = _never_falling(np.array([1.0, 3.0, 2.0, 0.0, 5.0]), np.array([1, 1, 1, 2, 1]))
    assert found.tolist() == pytest.approx([1.0, 1.25, 1.25, 1.25, 5.0])


def test_the_histogram_adds_up():
    given, repaired, _ = mixture(0.4)
    parts = calibrate(given, repaired, np.arange(len(given))).histogram()
    counts = np.array(parts["counts"])
    assert counts.sum() == len(given)
    assert np.allclose(np.array(parts["matched"]) + parts["mismatched"], counts)
    assert len(parts["edges"]) == len(counts) + 1
