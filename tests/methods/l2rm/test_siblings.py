"""Pairs that show one image: who they are, and whether their texts agree."""

import numpy as np
import pytest
import torch

from mispair.methods.base import mean_vectors
from mispair.methods.l2rm.siblings import SiblingLoss, Siblings, agreement
from mispair.types import Encoded


def test_partners_show_the_same_image_and_take_turns():
    image_of = np.random.default_rng(0).permutation(np.repeat(np.arange(23), 5))
    siblings = Siblings(image_of)
    ids = np.arange(115)
    met = {int(i): set() for i in ids}
    for turn in range(4):
        partners = siblings.partners(ids, turn)
        assert (image_of[partners] == image_of).all()
        assert (partners != ids).all()
        for i, partner in zip(ids, partners, strict=True):
            met[int(i)].add(int(partner))
    assert all(len(partners) == 4 for partners in met.values())


def test_a_pair_that_is_alone_gets_itself():
    siblings = Siblings(np.array([4, 7, 4, 9]))
    assert siblings.partners(np.arange(4), 3).tolist() == [2, 1, 0, 3]
    assert siblings.any
    assert not Siblings(np.arange(5)).any


def test_mean_vectors_read_real_parts_alone():
    values = torch.tensor([[[3.0, 0.0], [0.0, 4.0], [9.0, 9.0]]])
    vector = mean_vectors(Encoded(values, torch.tensor([[True, True, False]])))
    assert torch.allclose(vector, torch.tensor([[0.6, 0.8]]))


def test_agreement_by_hand():
    assert agreement(torch.eye(3)) == 1
    assert agreement(-torch.eye(3)) == 0
    assert agreement(torch.tensor([[0.5, 0.9], [0.1, 0.5]])) == 0.5


def epochs(loss, scores):
    image_of = np.repeat(np.arange(4), 2)
    for epoch in range(2):
        loss.begin(image_of, epoch)
        if loss.trusted:
            loss.observe(scores)
    return loss


@pytest.mark.parametrize(("when", "scores", "trusted"), [
    ("auto", torch.eye(5), True),
    ("auto", torch.zeros(5, 5), False),
    ("always", torch.zeros(5, 5), True),
    ("never", torch.eye(5), False),
])  # fmt: skip
def test_siblings_are_used_while_they_agree(when, scores, trusted):
    loss = epochs(SiblingLoss(when, 1.0), scores)
    assert loss.trusted is trusted
    assert set(loss.streams("matched")) == ({"matched_siblings"} if trusted else set())
    other = SiblingLoss(when, 1.0)
    other.restore(loss.state())
    assert other.trusted is trusted


def test_where_no_image_has_two_texts_there_are_none():
    loss = SiblingLoss("always", 1.0)
    loss.begin(np.arange(6), 0)
    assert loss.streams("batch") == {}


def test_the_stream_follows_its_own_batch():
    loss = SiblingLoss("always", 1.0)
    loss.begin(np.array([1, 1, 2, 2]), 0)
    stream = loss.streams("batch")["batch_siblings"]
    assert stream.side == "texts"
    assert stream.choose({"batch": np.array([3, 0]), "other": np.array([1, 1])}).tolist() == [2, 1]
