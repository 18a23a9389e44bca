"""Probabilities from re-pairing: known mixtures, the order, and the histogram that is shown."""

from __future__ import annotations

import numpy as np
import pytest

from mispair.auditing.calibration import calibrate, never_falling
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
    estimate = found.estimate
    assert abs(estimate.rate - wrong.mean()) < 0.03
    assert estimate.low <= wrong.mean() <= estimate.high
    assert estimate.high - estimate.low < 0.1
    assert calibration_error(found.p_mismatch, wrong) < 0.03
    assert auroc(found.p_mismatch, wrong) > 0.97
    assert estimate.conclusive


def test_the_posterior_is_that_of_the_two_normals():
    given, repaired, _ = mixture(0.4, pairs=20011)
    found = calibrate(given, repaired, np.arange(len(given)))
    x = given[:, 0]
    matched, mismatched = 0.6 * np.exp(-((x + 3) ** 2) / 2), 0.4 * np.exp(-(x**2) / 2)
    assert np.abs(found.p_mismatch - mismatched / (matched + mismatched)).mean() < 0.02


def test_clean_pairs_are_not_accused_and_random_ones_are_not_trusted():
    given, repaired, _ = mixture(0.0)
    clean = calibrate(given, repaired, np.arange(len(given)))
    assert clean.estimate.rate < 0.01
    assert (clean.p_mismatch > 0.5).sum() <= 3
    assert clean.estimate.conclusive
    given, repaired, _ = mixture(1.0)
    hopeless = calibrate(given, repaired, np.arange(len(given)))
    assert hopeless.estimate.rate > 0.5
    assert not hopeless.estimate.conclusive


def test_the_order_of_p_is_that_of_the_suspicion():
    given, repaired, _ = mixture(0.4, shift=1.5)
    found = calibrate(given, repaired, np.arange(len(given)))
    assert np.array_equal(np.argsort(found.p_mismatch, kind="stable"), np.argsort(found.suspicion, kind="stable"))


def test_never_falling_by_hand():
    found = never_falling(np.array([1.0, 3.0, 2.0, 0.0, 5.0]), np.array([1, 1, 1, 2, 1]))
    assert found.tolist() == pytest.approx([1.0, 1.25, 1.25, 1.25, 5.0])


def test_the_histogram_adds_up():
    given, repaired, _ = mixture(0.4)
    parts = calibrate(given, repaired, np.arange(len(given))).histogram()
    counts = np.array(parts["counts"])
    assert counts.sum() == len(given)
    assert np.allclose(np.array(parts["matched"]) + parts["mismatched"], counts)
    assert len(parts["edges"]) == len(counts) + 1


def test_evidence_counts_one_way_only():
    """A kind that speaks the wrong way round is left out, and a pair that is better in all else is never worse off."""
    rng = np.random.default_rng(0)
    given, repaired, wrong = mixture(0.4)
    given = np.column_stack([given, np.where(wrong, -1.0, 1.0) + rng.normal(size=len(wrong))])  # inverted
    repaired = np.column_stack([repaired, rng.normal(-1.0, 1.0, len(repaired))])
    found = calibrate(given, repaired, np.arange(len(given)))
    assert found.weights.min() >= 0
    assert found.weights[2] == 0
    one, other = rng.integers(len(given), size=(2, 5003))
    better = (given[one] <= given[other]).all(1)
    assert better.sum() > 300
    assert (found.p_mismatch[one][better] <= found.p_mismatch[other][better]).all()
