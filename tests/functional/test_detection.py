"""Detection metrics against scikit-learn."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, f1_score, precision_score, recall_score, roc_auc_score

from mispair.functional.detection import (
    auroc,
    average_precision,
    best_f1_threshold,
    calibration_error,
    detection_metrics,
)


class TestDetection:
    @given(n=st.sampled_from([5, 17, 101]), seed=st.integers(0, 1000), digits=st.sampled_from([1, 2, 9]))
    def test_equals_scikit_learn_ties_included(self, n, seed, digits):
        rng = np.random.default_rng(seed)
        truth = rng.random(n) < 0.4
        truth[:2] = True, False
        p = np.clip(rng.normal(0.3 + 0.3 * truth, 0.2), 0, 1).round(digits)
        metrics = detection_metrics(p, truth)
        assert metrics["auroc"] == pytest.approx(roc_auc_score(truth, p))
        assert metrics["average_precision"] == pytest.approx(average_precision_score(truth, p))
        assert metrics["precision"] == pytest.approx(precision_score(truth, p > 0.5, zero_division=0))
        assert metrics["recall"] == pytest.approx(recall_score(truth, p > 0.5))
        assert metrics["f1"] == pytest.approx(f1_score(truth, p > 0.5, zero_division=0))

    def test_who_is_called_wrong_for_certain(self):
        metrics = detection_metrics([0.99, 1.0, 0.995, 0.98, 0.1], [True, False, True, True, False])
        assert metrics["certain"] == pytest.approx(2 / 3)
        assert math.isnan(detection_metrics([0.9, 0.1], [True, False])["certain"])

    def test_calibration_by_hand(self):
        # Bin [0.6, 0.67): mean p 0.62, all mismatched; bin [0, 0.07): mean p 0.03, none. 2 + 2 pairs.
        assert calibration_error([0.61, 0.63, 0.02, 0.04], [True, True, False, False]) == pytest.approx(
            0.5 * 0.38 + 0.5 * 0.03
        )

    def test_calibrated_probabilities_have_little_error(self):
        rng = np.random.default_rng(0)
        p = rng.random(50_000)
        assert calibration_error(p, rng.random(50_000) < p) < 0.01
        assert calibration_error(p**3, rng.random(50_000) < p) > 0.1

    def test_one_kind_only(self):
        assert math.isnan(auroc([0.1, 0.2], [True, True]))
        assert math.isnan(average_precision([0.1, 0.2], [False, False]))
        metrics = detection_metrics([0.1, 0.9], [False, False])
        assert metrics["precision"] == 0
        assert math.isnan(metrics["recall"])

    @pytest.mark.parametrize(
        ("p", "truth", "message"),
        [
            ([0.1, 0.2], [True], "one value per pair"),
            ([], [], "one value per pair"),
            ([0.1, math.nan], [True, False], "finite, got NaN or infinity at pair 1"),
            ([0.1, 1.2], [True, False], r"probabilities must be in \[0, 1\], got values from 0.1 to 1.2"),
        ],
    )
    def test_bad_input_gets_one_sentence(self, p, truth, message):
        with pytest.raises(ValueError, match=message):
            detection_metrics(p, truth)


def test_calibration_error_by_hand():
    # The last bin holds 1.0 itself: 0.9 and 1.0 are in two bins of fifteen, so their errors do not cancel.
    assert calibration_error([1.0, 0.9], [False, True]) == pytest.approx((1.0 + 0.1) / 2)
    assert calibration_error([0.2, 0.3], [True, False], bins=1) == pytest.approx(0.25)
    assert calibration_error([0.2, 0.7], [True, False], bins=2) == pytest.approx((0.8 + 0.7) / 2)


@given(st.integers(0, 10_000))
def test_every_figure_is_the_one_it_is_called(seed):
    rng = np.random.default_rng(seed)
    p, wrong = rng.random(29), rng.random(29) < 0.4
    wrong[:2] = True, False
    found = detection_metrics(p, wrong)
    for name, figure in (("auroc", auroc), ("average_precision", average_precision), ("ece", calibration_error)):
        assert found[name] == figure(p, wrong), name


def test_the_threshold_of_the_best_expected_f1():
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 1.0, 4000)
    wrong = rng.random(4000) < p  # probabilities that mean it
    chosen = best_f1_threshold(p)
    f1 = {t: detection_metrics((p >= t).astype(float), wrong)["f1"] for t in np.linspace(0.02, 0.98, 49)}
    assert abs(detection_metrics((p >= chosen).astype(float), wrong)["f1"] - max(f1.values())) < 0.01
    assert chosen < 0.5  # half of the best F1, which is below 1
    assert best_f1_threshold(np.array([1.0, 0.0, 0.0])) == 1.0
