"""Neighbours against the slow, obvious way: a loop over pairs in which nobody vouches for himself."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mispair.auditing.neighbours import Neighbours

PAIRS = 61
NEAREST = 10


def _unit(rng, rows, width):
    return torch.nn.functional.normalize(torch.from_numpy(rng.normal(size=(rows, width)).astype(np.float32)), dim=1)


def _slow(own, other, of_own, of_other, item, partner):
    """Mean cosine of `partner` with the other sides of the 10 items most like `item`, that item and its twins aside."""
    others = []
    for a, b in zip(of_own, of_other, strict=True):
        closeness, likeness = float(own[a] @ own[item]), float(other[b] @ other[partner])
        if closeness < 1 - 1e-5 and likeness < 1 - 1e-5:
            others.append((closeness, likeness))
    others.sort(key=lambda entry: -entry[0])
    return -float(np.mean([likeness for _, likeness in others[:NEAREST]]))


@pytest.fixture
def sides():
    rng = np.random.default_rng(0)
    images, texts = _unit(rng, PAIRS, 7), _unit(rng, PAIRS, 11)
    return images, texts, rng.permutation(PAIRS), np.arange(PAIRS)  # no two alike: ties have no order


def test_disagreement_is_that_of_the_loop(sides):
    images, texts, image_rows, text_rows = sides
    rng = np.random.default_rng(1)
    rows = np.concatenate([image_rows, rng.integers(PAIRS, size=37)])  # the pairs themselves, and others
    cols = np.concatenate([text_rows, rng.integers(PAIRS, size=37)])
    found = Neighbours(images, texts, image_rows, text_rows).disagreement(rows, cols)
    for k, (row, col) in enumerate(zip(rows, cols, strict=True)):
        assert found[k, 0] == pytest.approx(_slow(images, texts, image_rows, text_rows, row, col), abs=1e-5)
        assert found[k, 1] == pytest.approx(_slow(texts, images, text_rows, image_rows, col, row), abs=1e-5)


def test_a_pair_does_not_vouch_for_itself():
    """Captions at right angles to each other: the pair itself is the only one that could speak for it."""
    rng = np.random.default_rng(0)
    count = 40
    images, texts = _unit(rng, count, 6), torch.eye(count)
    every = np.arange(count)
    found = Neighbours(images, texts, every, every).disagreement(every, every)
    assert np.allclose(found[:, 0], 0)


def test_a_copy_of_the_pair_does_not_vouch_for_it_either():
    rng = np.random.default_rng(0)
    count = 40
    images, texts = _unit(rng, count, 6), torch.eye(count)
    twice = torch.cat([images, images]), torch.cat([texts, texts])
    every = np.arange(2 * count)
    found = Neighbours(*twice, every, every).disagreement(every, every)
    assert np.allclose(found[:, 0], 0)
