"""Pairs judged by all others with nothing trained: planted pairs, and that a pair has no part in its own judgement."""

import numpy as np
import pytest

from mispair.functional import judged_by_others
from mispair.functional.detection import auroc, calibration_error
from mispair.functional.judged_by_others import REPAIRINGS, _other_pairs, judge_by_others


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
    images, texts, image_of, wrong = planted(0.3, pairs=1000)
    pair = int(np.flatnonzero(wrong)[0])
    before = judge_by_others(images, texts, image_of).suspicion
    texts[pair] = -texts[pair]
    after = judge_by_others(images, texts, image_of).suspicion
    assert after[pair] == pytest.approx(-before[pair], abs=0.3)  # the prediction stays, its text is turned round
    assert np.abs(np.delete(after - before, pair)).max() < 0.3  # in units of the spread of re-paired pairs


def test_weights_of_zero_teach_nothing():
    images, texts, image_of, wrong = planted(0.7, pairs=600, noise=2.0)
    told = judge_by_others(images, texts, image_of, np.where(wrong, 0.0, 1.0))
    asked = judge_by_others(images, texts, image_of)
    assert auroc(told.suspicion, wrong) > auroc(asked.suspicion, wrong) + 0.01


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


def held(pairs, noise, draws=16, **values):
    """In how many draws the interval holds the rate."""
    count = 0
    for draw in range(draws):
        images, texts, image_of, wrong = planted(0.1 + 0.05 * draw, pairs=pairs, noise=noise, seed=100 + draw)
        estimate = judge_by_others(images, texts, image_of, **values).estimate
        count += estimate.low - 0.0025 <= wrong.mean() <= estimate.high + 0.0025
    return count


@pytest.mark.parametrize("noise", [1.0, 2.0])
def test_the_interval_holds_the_rate_of_nine_draws_in_ten(noise):
    assert held(1500, noise) >= 15


def test_every_image_is_re_paired_several_times_with_a_text_of_another():
    images, texts, image_of, _ = planted(0.3, pairs=600, per_image=3)
    assert len(judge_by_others(images, texts, image_of).repaired) == REPAIRINGS * 600
    fold = np.random.default_rng(0).integers(5, size=200)[image_of]
    for draw in range(3):
        other = _other_pairs(image_of, fold, draw)
        assert (image_of[other] != image_of).all()
        assert (fold[other] == fold).all()


def test_a_space_found_by_other_images_tells_more_than_predictions_alone(monkeypatch):
    images, texts, image_of, wrong = planted(0.4, noise=1.5)
    both = judge_by_others(images, texts, image_of)
    monkeypatch.setattr(judged_by_others, "_FEWEST_IMAGES", 10_000)
    alone = judge_by_others(images, texts, image_of)
    assert auroc(both.suspicion, wrong) > auroc(alone.suspicion, wrong) + 0.003


def test_a_model_that_knew_both_sides_before_counts_as_far_as_it_tells():
    images, texts, image_of, wrong = planted(0.4, pairs=600, noise=4.0)
    rng = np.random.default_rng(1)
    right = texts.copy()
    right[wrong] = right[np.roll(np.flatnonzero(wrong), -1)]  # what the images show, among the texts
    telling = (right + 8 * rng.normal(size=right.shape)).astype(np.float32)
    nothing = rng.normal(size=right.shape).astype(np.float32)
    said = {name: judge_by_others(images, texts, image_of, joint=joint).suspicion
            for name, joint in (("none", None), ("telling", telling), ("nothing", nothing))}  # fmt: skip
    assert auroc(said["telling"], wrong) > auroc(said["none"], wrong) + 0.02
    assert auroc(said["nothing"], wrong) > auroc(said["none"], wrong) - 0.01
