"""Monotone, chosen by held-out labels, and nothing where labels are few."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from mispair.reviewing.recalibration import _isotonic, recalibrate


def calibration_error(p, truth):
    bins = np.clip((p * 10).astype(int), 0, 9)
    return sum(abs(p[bins == k].mean() - truth[bins == k].mean()) * (bins == k).mean() for k in set(bins.tolist()))


def biased(n, seed=0):
    """A model that ranks well and is a tenth too sure that pairs are mismatched."""
    rng = np.random.default_rng(seed)
    logit = 2 * rng.normal(size=n)
    truth = rng.random(n) < 1 / (1 + np.exp(-logit))
    return 1 / (1 + np.exp(-(logit + 1.5))), truth


def test_labels_mend_the_probabilities_of_all_pairs():
    p, truth = biased(4000)
    mended = recalibrate(p[:300], truth[:300])
    assert mended.kind != "none"
    assert calibration_error(mended(p), truth) < 0.5 * calibration_error(p, truth)


def test_it_is_monotone_and_never_certain():
    p, truth = biased(400)
    mended = recalibrate(p, truth)(np.linspace(0, 1, 1001))
    assert (np.diff(mended) >= 0).all()
    assert 0 < mended.min() <= mended.max() < 1


def test_probabilities_that_are_right_stay_nearly_as_they_are():
    rng = np.random.default_rng(1)
    p = rng.random(3000)
    truth = rng.random(3000) < p
    assert np.abs(recalibrate(p[:200], truth[:200])(p) - p).mean() < 0.06


@pytest.mark.parametrize("labels", [np.zeros(5, bool), np.zeros(100, bool), np.ones(100, bool)])
def test_few_labels_or_one_kind_change_nothing(labels):
    p = np.linspace(0, 1, len(labels))
    assert recalibrate(p, labels).kind == "none"
    np.testing.assert_array_equal(recalibrate(p, labels)(p), p)


def test_pooling_equals_the_librarys_up_to_its_smoothing():
    rng = np.random.default_rng(2)
    x = np.sort(rng.normal(size=60)).round(1)  # with ties
    y = (rng.random(60) < 0.5).astype(float)
    knots, values = _isotonic(x, y)
    steps = IsotonicRegression().fit(x, y).predict(x)
    blocks = [(x[steps == s].mean(), s) for s in np.unique(steps)]
    assert len(knots) == len(blocks)
    np.testing.assert_allclose(knots, [place for place, _ in blocks])
    assert (np.diff(values) >= 0).all()
