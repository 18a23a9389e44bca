"""A mixture with one known component: planted rates, none and all mismatched, odd shapes."""

import numpy as np
import pytest

from mispair.functional.detection import calibration_error
from mispair.functional.known_null import posterior_mismatched


def planted(rate, mean=-2.0, spread=0.9, pairs=4001, seed=0):
    rng = np.random.default_rng(seed)
    wrong = rng.random(pairs) < rate
    given = np.where(wrong, rng.normal(size=pairs), rng.normal(mean, spread, pairs))
    return given, rng.normal(size=pairs), wrong


@pytest.mark.parametrize("rate", [0.1, 0.4, 0.6, 0.8])
@pytest.mark.parametrize(("mean", "spread"), [(-2.0, 0.9), (-2.5, 0.7), (-3.0, 1.4)])
def test_planted_mixtures_are_found(rate, mean, spread):
    given, repaired, wrong = planted(rate, mean, spread)
    p = posterior_mismatched(given, repaired)
    assert abs(p.mean() - rate) < 0.07
    assert calibration_error(p, wrong) < 0.07


def test_the_scale_does_not_matter():
    given, repaired, _ = planted(0.4)
    assert np.allclose(posterior_mismatched(given, repaired), posterior_mismatched(7 * given - 3, 7 * repaired - 3))


def test_clean_pairs_are_left_alone():
    given, repaired, _ = planted(0.0)
    assert (posterior_mismatched(given, repaired) > 0.5).mean() < 0.02


def test_it_never_falls_with_suspicion():
    given, repaired, _ = planted(0.5, -1.0, 1.5)
    p = posterior_mismatched(given, repaired)
    assert (np.diff(p[np.argsort(given)]) >= 0).all()
    assert p.min() >= 0
    assert p.max() <= 1


@pytest.mark.parametrize("given", [np.zeros(7), np.array([-40.0, -38.0, 0.0, 0.5, 40.0]), np.array([1.0])])
def test_odd_values_give_probabilities(given):
    p = posterior_mismatched(given, np.array([0.0, 0.1, -0.1]))
    assert np.isfinite(p).all()
    assert (p >= 0).all()
    assert (p <= 1).all()
