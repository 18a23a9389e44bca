"""Which proposals are made, to whom, and which are believed."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mispair.auditing.proposals import (
    _accepted,
    _holders,
    _running_number,
    _Suspects,
    _swaps,
    _witnesses,
    assign,
    propose,
)
from mispair.auditing.space import Space
from mispair.progress import silent


class Believing:
    """A calibration that finds every candidate convincing, or those it is told to."""

    def __init__(self, *answers):
        self.answers = answers

    def convinces(self, evidence):
        return np.array(self.answers or [True] * len(evidence))


def _space(similarity):
    """A space whose product is the given matrix."""
    scores = torch.tensor(similarity, dtype=torch.float32)
    return Space(scores, torch.eye(scores.shape[1]))


SIMILARITY = [
    [0.2, 0.9, 0.1],
    [0.5, 0.6, 0.3],
    [0.4, 0.1, 0.4],
]
EVERY = np.arange(3)
GIVEN = np.array([0.2, 0.6, 0.4], np.float32)


def test_a_proposal_must_score_above_the_given_pair():
    # 0 asks for caption 1 (0.9 > 0.2), 1 for caption 0 (0.5 < 0.6), 2 for caption 0 (0.4, a tie).
    accepted, gain = _accepted(_space(SIMILARITY), EVERY, EVERY, np.array([1, 0, 0]), GIVEN, Believing(), silent)
    assert accepted.tolist() == [1, -1, -1]
    assert gain[0] == pytest.approx(0.7)
    assert np.isnan(gain[1:]).all()


def test_a_proposal_must_convince():
    accepted, gain = _accepted(_space(SIMILARITY), EVERY, EVERY, np.array([1, -1, -1]), GIVEN, Believing(False), silent)
    assert accepted.tolist() == [-1, -1, -1]
    assert np.isnan(gain).all()


def test_flipped_it_is_the_image_that_is_exchanged():
    # Caption 0 asks for the image of pair 1: 0.5 > 0.2; caption 1 for the image of pair 2: 0.1 < 0.6.
    accepted, gain = _accepted(
        _space(SIMILARITY), EVERY, EVERY, np.array([1, 2, -1]), GIVEN, Believing(), silent, flipped=True
    )
    assert accepted.tolist() == [1, -1, -1]
    assert gain[0] == pytest.approx(0.3)


def test_a_swap_mends_both():
    # 0 takes caption 1; the way back, image 1 with caption 0, scores 0.5: above what pair 1 has only if that is less.
    for own, partner in ((0.4, 1), (0.6, -1), (0.5, -1)):
        swap = _swaps(
            _space(SIMILARITY), EVERY, EVERY, np.array([1, -1, -1]), np.array([0.2, own, 0.4], np.float32), Believing()
        )
        assert swap.tolist() == [partner, 0 if partner == 1 else -1, -1]
    # The other way round: 1 takes the caption of the very first pair.
    swap = _swaps(_space(SIMILARITY), EVERY, EVERY, np.array([-1, 0, -1]), np.zeros(3, np.float32), Believing())
    assert swap.tolist() == [1, 0, -1]
    swap = _swaps(_space(SIMILARITY), EVERY, EVERY, np.array([1, -1, -1]), np.zeros(3, np.float32), Believing(False))
    assert swap.tolist() == [-1, -1, -1]


def test_a_pair_swaps_once():
    scores = np.full(3, -1, np.float32)
    swap = _swaps(_space(SIMILARITY), EVERY, EVERY, np.array([1, 2, 1]), scores, Believing())
    assert swap.tolist() == [1, 0, -1]


def test_an_image_with_two_pairs_takes_its_two_heaviest_texts():
    own = np.array([0, 1, 0])  # pairs 0 and 2 show image 0
    query = np.array([0, 0, 0, 1, 1])
    partner = np.array([5, 6, 7, 8, 9])
    weight = np.array([0.3, 0.9, 0.1, 1.4, 0.21])
    chosen, share = assign(own, query, partner, weight, np.array([True, True, True]))
    assert chosen.tolist() == [6, 8, 5]
    assert share == pytest.approx([0.9, 1.0, 0.3])  # a share of a pair is at most all of it
    chosen, share = assign(own, query, partner, weight, np.array([False, True, True]))
    assert chosen.tolist() == [-1, 8, 6]  # who is no issue takes nothing
    assert np.isnan(share[0])


def test_what_is_carried_must_be_a_fifth_of_a_pair():
    chosen, share = assign(np.array([0]), np.array([0]), np.array([4]), np.array([0.2]), np.array([True]))
    assert chosen.tolist() == [-1]
    assert np.isnan(share).all()


def test_running_numbers_and_holders():
    assert _running_number(np.array([3, 3, 3, 7, 9, 9])).tolist() == [0, 1, 2, 0, 0, 1]
    assert _running_number(np.zeros(0, np.int64)).tolist() == []
    assert _holders(np.array([2, 0, 2, 1]), np.array([2, -1, 1, 0])).tolist() == [0, -1, 3, 1]


def _moved_together(together):
    """30 images with two captions each; every image shows the captions of the next one, or anybody's."""
    rng = np.random.default_rng(0)
    images = torch.nn.functional.normalize(torch.from_numpy(rng.normal(size=(30, 16)).astype(np.float32)), dim=1)
    belongs = np.repeat(np.roll(np.arange(30), 1), 2) if together else rng.permutation(np.repeat(np.arange(30), 2))
    texts = images[torch.from_numpy(belongs)]
    pairs = np.arange(60)
    return images, texts, _Suspects(pairs, np.arange(30), pairs, np.repeat(np.arange(30), 2), pairs, np.ones(60))


def test_captions_that_moved_together_are_witnesses_of_each_other():
    images, texts, suspects = _moved_together(True)
    found = _witnesses(images, texts, suspects)
    assert torch.allclose(found, texts.reshape(30, 2, 16).mean(1).repeat_interleave(2, 0), atol=1e-6)
    assert _witnesses(*_moved_together(False)) is None
    few = _Suspects(*(part[:10] for part in (suspects.pairs, suspects.images, suspects.texts)),
                    suspects.image[:10], suspects.text[:10], suspects.p[:10])  # fmt: skip
    assert _witnesses(images[:10], texts[:10], few) is None


def test_what_was_exchanged_is_found_and_swapped():
    rng = np.random.default_rng(0)
    images = torch.nn.functional.normalize(torch.from_numpy(rng.normal(size=(101, 24)).astype(np.float32)), dim=1)
    shown = np.arange(101)
    shown[:40] = shown[:40].reshape(-1, 2)[:, ::-1].ravel()  # 0 with 1, 2 with 3, ...
    space = Space(images, images[torch.from_numpy(shown)])
    p = np.where(shown != np.arange(101), 0.9, 0.1)
    every = np.arange(101)
    found = propose(space, every, every, p, space.score(every, every), Believing())
    assert found.caption_pair[:40].tolist() == shown[:40].tolist()
    assert found.image_pair[:40].tolist() == shown[:40].tolist()
    assert found.swap_with[:40].tolist() == shown[:40].tolist()
    assert (found.caption_gain[:40] > 0.2).all()
    assert (found.caption_weight[:40] > 0.5).all()
    for column in (found.caption_pair, found.image_pair, found.swap_with):
        assert (column[40:] == -1).all()
    for column in (found.caption_weight, found.caption_gain, found.image_weight, found.image_gain):
        assert np.isnan(column[40:]).all()


def test_only_one_suspect_is_not_rematched():
    space = _space(SIMILARITY)
    found = propose(space, EVERY, EVERY, np.array([0.9, 0.25, 0.1]), GIVEN, Believing())
    assert (found.caption_pair == -1).all()
    assert np.isnan(found.image_weight).all()


def test_the_holder_of_a_proposed_caption_is_the_most_suspicious_one():
    rng = np.random.default_rng(0)
    images = torch.nn.functional.normalize(torch.from_numpy(rng.normal(size=(60, 24)).astype(np.float32)), dim=1)
    text_of = np.arange(60)
    text_of[0] = text_of[1] = text_of[2] = 3  # three images show the caption of image 3, which shows that of image 0
    text_of[3] = 0
    p = np.where(np.arange(60) < 4, [0.6, 0.9, 0.7, 0.8, *[0.1] * 56], 0.1)
    every = np.arange(60)
    space = Space(images, images)
    found = propose(space, every, text_of, p, space.score(every, text_of), Believing())
    assert found.caption_pair[3] == 1
    assert found.caption_pair[0] == 3
