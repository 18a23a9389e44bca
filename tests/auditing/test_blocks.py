"""Transport in blocks: no image and no text moves more than it has, and one block is the solver itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mispair.auditing import blocks
from mispair.auditing.blocks import transport
from mispair.auditing.proposals import _cells, _Suspects
from mispair.auditing.space import Space
from mispair.functional.transport import partial_transport


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    images = torch.from_numpy(rng.normal(size=(97, 5)).astype(np.float32))
    score = rng.normal(size=(97, 131)) + 3 * np.eye(97, 131)
    rows, cols = np.nonzero(rng.random((97, 131)) < 0.4)
    return rows, cols, score[rows, cols], rng.random(97) + 0.5, rng.random(131) + 0.1, images


def test_one_block_is_the_solver(problem):
    rows, cols, score, image_mass, text_mass, _ = problem
    found = transport(*problem, lambda done, total: None)
    cost, forbidden = torch.zeros(97, 131, dtype=torch.float64), torch.ones(97, 131, dtype=torch.bool)
    cost[rows, cols] = torch.from_numpy(score.max() - score)
    forbidden[rows, cols] = False
    masses = torch.from_numpy(image_mass), torch.from_numpy(text_mass)
    mass = 0.9 * float(min(masses[0].sum(), masses[1].sum()))
    slow = partial_transport(cost, mass, 0.08, forbidden, *masses, tol=1e-3, max_iter=200, validate=False).plan
    assert np.allclose(found, slow[rows, cols])


@pytest.mark.parametrize("most", [11, 1024])
def test_blocks_keep_to_the_masses(problem, monkeypatch, most):
    rows, cols, _, image_mass, text_mass, _ = problem
    monkeypatch.setattr(blocks, "_WHOLE", 10)
    monkeypatch.setattr(blocks, "ROWS", 13)
    monkeypatch.setattr(blocks, "COLUMNS", most)
    told = []
    found = transport(*problem, lambda done, total: told.append((done, total)))
    assert told[-1] == (7, 7)
    assert found.sum() > 0.3 * min(image_mass.sum(), text_mass.sum())
    assert (np.bincount(rows, found, 97) <= image_mass * (1 + 1e-9)).all()
    assert (np.bincount(cols, found, 131) <= text_mass * (1 + 1e-9)).all()


def test_given_pairs_carry_nothing():
    rng = np.random.default_rng(0)
    vectors = torch.nn.functional.normalize(torch.from_numpy(rng.normal(size=(41, 6)).astype(np.float32)), dim=1)
    every = np.arange(41)
    suspects = _Suspects(every, every, every, every, every, np.ones(41))
    rows, cols, _ = _cells(Space(vectors, vectors), suspects, every * 41 + every, lambda what, done, total: None)
    assert len(rows) > 41 * 30
    assert not (rows == cols).any()
