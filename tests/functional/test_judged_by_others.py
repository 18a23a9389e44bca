"""Pairs judged by all others with nothing trained: planted pairs, and that a pair has no part in its own judgement."""

import numpy as np
import pytest

from mispair.functional.detection import auroc, calibration_error
from mispair.functional.judged_by_others import judge_by_others


def planted(rate, pairs=1500, per_image=1, noise=0.7, seed=0):
    """Images, texts, the image of each pair, and which pairs are wrong: whole images exchanged."""
    rng = np.random.default_rng(seed)
    images = pairs // per_image
    meaning = rng.normal(size=(images, 10))
    seen = meaning @ rng.normal(size=(10, 24)) + noise * rng.normal(size=(images, 24))
    wrong = np.zeros(images, bool)
    wrong[rng.permutation(images)[: round(rate * images)]] = True
    shown = np.arange(images)
    shown[wrong] = np.roll(np.flatnonzero(wrong), 1)
    image_of = np.repeat(np.arange(images), per_image)
    said = meaning[shown[image_of]] @ rng.normal(size=(10, 16)) + noise * rng.normal(size=(len(image_of), 16))
    return seen.astype(np.float32), said.astype(np.float32), image_of, wrong[image_of]


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.3, 0.6])
@pytest.mark.parametrize("per_image", [1, 3])
def test_the_rate_is_held_and_probabilities_mean_it(rate, per_image):
    images, texts, image_of, wrong = planted(rate, per_image=per_image)
    judged = judge_by_others(images, texts, image_of)
    assert judged.estimate.low - 0.0025 <= wrong.mean() <= judged.estimate.high + 0.0025
    assert calibration_error(judged.p_mismatch, wrong) < 0.08
    if rate:
        assert auroc(judged.suspicion, wrong) > 0.93


def test_a_pair_has_no_part_in_its_own_judgement():
    images, texts, image_of, _ = planted(0.3, pairs=200)
    before = judge_by_others(images, texts, image_of).suspicion
    texts[17] = -texts[17]
    after = judge_by_others(images, texts, image_of).suspicion
    assert after[17] == pytest.approx(-before[17], abs=0.15)  # the prediction stays, its text is turned round
    assert np.abs(np.delete(after - before, 17)).max() < 0.15


def test_weights_of_zero_teach_nothing():
    images, texts, image_of, wrong = planted(0.4, pairs=400)
    told = judge_by_others(images, texts, image_of, np.where(wrong, 0.0, 1.0))
    asked = judge_by_others(images, texts, image_of)
    assert told.suspicion[~wrong].mean() < asked.suspicion[~wrong].mean() - 0.01
    assert auroc(told.suspicion, wrong) > auroc(asked.suspicion, wrong)


def test_equal_input_gives_equal_output():
    images, texts, image_of, _ = planted(0.3, pairs=200)
    one, other = judge_by_others(images, texts, image_of), judge_by_others(images, texts, image_of)
    assert np.array_equal(one.p_mismatch, other.p_mismatch)


def test_sides_that_say_nothing_of_each_other_leave_the_rate_open():
    rng = np.random.default_rng(0)
    images, texts = (rng.normal(size=(400, 8)).astype(np.float32) for _ in range(2))
    estimate = judge_by_others(images, texts, np.arange(400)).estimate
    assert not estimate.conclusive
    assert estimate.high > 0.9
