"""The interval holds the truth whatever the model is worth, and a good model narrows it."""

import numpy as np
import pytest

from mispair.errors import InputError
from mispair.reviewing.estimate import estimate_rate

PAIRS = 3000


def probabilities(truth, kind, rng):
    noise = rng.normal(size=len(truth))
    if kind == "good":
        return 1 / (1 + np.exp(-2 * (noise + 3 * truth - 1.5)))
    if kind == "random":
        return rng.random(len(truth))
    if kind == "inverted":
        return 1 / (1 + np.exp(-2 * (noise - 3 * truth + 1.5)))
    assert kind == "overconfident"
    return (noise + 3 * truth - 1.5 > 1).astype(float)


@pytest.mark.parametrize("kind", ["good", "random", "inverted", "overconfident"])
@pytest.mark.parametrize("rate", [0.02, 0.3, 0.6])
def test_the_interval_covers_in_95_of_100_draws(kind, rate):
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(200):
        truth = (rng.random(PAIRS) < rate).astype(float)
        p = probabilities(truth, kind, rng)
        sample = rng.choice(PAIRS, 120, replace=False)
        estimate = estimate_rate(truth[sample], p[sample], p)
        held += estimate.low <= truth.mean() <= estimate.high
    assert held >= 185  # of 200; a true 95 % falls below that once in 30


def test_a_good_model_narrows_it_and_a_bad_one_does_not_widen_it():
    rng = np.random.default_rng(1)
    truth = (rng.random(PAIRS) < 0.3).astype(float)
    sample = rng.choice(PAIRS, 120, replace=False)
    width = {}
    for kind in ("good", "random"):
        p = probabilities(truth, kind, rng)
        estimate = estimate_rate(truth[sample], p[sample], p)
        alone = estimate.labels_only[1] - estimate.labels_only[0]
        width[kind] = (estimate.high - estimate.low) / alone
    assert width["good"] < 0.75
    assert width["random"] <= 1.0


def test_before_the_first_label_nothing_is_known():
    estimate = estimate_rate(np.zeros(0), np.zeros(0), np.full(50, 0.2))
    assert (estimate.low, estimate.high, estimate.labelled) == (0.0, 1.0, 0)


def test_when_all_are_labelled_nothing_is_left_to_be_unsure_of():
    truth = np.array([1.0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0])
    estimate = estimate_rate(truth, np.full(12, 0.5), np.full(12, 0.5))
    assert estimate.rate == pytest.approx(0.25)
    assert estimate.high - estimate.low == pytest.approx(0.0, abs=1e-9)


def test_no_mismatch_in_ten_pairs_does_not_mean_none():
    estimate = estimate_rate(np.zeros(10), np.full(10, 0.1), np.full(1000, 0.1))
    assert estimate.rate <= 0.2
    assert estimate.high > 0.2


def test_the_sentence():
    truth = np.r_[np.ones(30), np.zeros(70)]
    assert estimate_rate(truth, np.full(100, 0.3), np.full(5000, 0.3)).sentence().startswith("after 100 pairs: 3")


@pytest.mark.parametrize(
    ("labels", "p", "everyone"),
    [([1, 0], [0.5], [0.5, 0.5]), ([2.0], [0.5], [0.5]), ([1.0], [np.nan], [0.5]), ([1.0], [0.5], [np.nan])],
)
def test_values_that_make_no_sense_are_refused(labels, p, everyone):
    with pytest.raises(InputError):
        estimate_rate(np.array(labels, float), np.array(p, float), np.array(everyone, float))
