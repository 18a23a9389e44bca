"""Transport over listed cells: the plan of the whole grid with all others forbidden."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mispair.errors import InputError
from mispair.functional.cell_transport import transport_cells
from mispair.functional.transport import partial_transport
from tests import oracles


def listed(n, m, share, seed=0):
    """-> rows, cols, cost of some cells, in any order, at least one in each row and column; masses p and q."""
    rng = np.random.default_rng(seed)
    allowed = rng.random((n, m)) < share
    allowed[np.arange(n), np.arange(n) % m] = allowed[np.arange(m) % n, np.arange(m)] = True
    rows, cols = np.nonzero(allowed)
    order = rng.permutation(len(rows))
    return rows[order], cols[order], rng.random(len(rows)), rng.random(n) + 0.1, rng.random(m) + 0.1


def test_two_cells_by_hand():
    # Each cell is alone in its row and column; 1.0 of 2.0 moves, and by symmetry half of it on either.
    one = np.ones(2)
    plan = transport_cells(np.array([1, 0]), np.array([0, 1]), np.zeros(2), 1.0, 0.05, one, one)
    assert np.allclose(plan, 0.5)


@pytest.mark.parametrize("entropy", [0.02, 0.3])
@pytest.mark.parametrize(("n", "m", "share"), [(13, 17, 0.2), (17, 11, 0.5), (1, 5, 1.0), (7, 1, 1.0)])
def test_it_equals_the_slow_reference(n, m, share, entropy):
    rows, cols, cost, p, q = listed(n, m, share)
    mass = 0.6 * min(p.sum(), q.sum())
    found = transport_cells(rows, cols, cost, mass, entropy, p, q, tol=1e-9, max_iter=20_000)
    grid, forbidden = np.zeros((n, m)), np.ones((n, m), bool)
    grid[rows, cols], forbidden[rows, cols] = cost, False
    truth = partial_transport(
        torch.from_numpy(grid), mass, entropy, torch.from_numpy(forbidden), torch.from_numpy(p), torch.from_numpy(q),
        tol=1e-9, max_iter=20_000,
    ).plan.numpy()  # fmt: skip
    assert np.abs(found - truth[rows, cols]).sum() < 1e-6 * mass
    assert found.sum() == pytest.approx(mass, rel=1e-6)
    slow = oracles.sinkhorn_log(grid, mass, entropy, forbidden, p, q)
    assert np.abs(found - slow[rows, cols]).sum() < 1e-6 * mass


def test_a_plan_that_is_not_finished_carries_no_more_than_it_is_given():
    rows, cols, cost, p, q = listed(97, 89, 0.05, seed=3)
    found = transport_cells(rows, cols, 5 * cost, 0.9 * min(p.sum(), q.sum()), 0.01, p, q, max_iter=8)
    assert (np.bincount(rows, found, 97) <= p * (1 + 1e-9)).all()
    assert (np.bincount(cols, found, 89) <= q * (1 + 1e-9)).all()


def test_what_does_not_fit_is_refused():
    one = np.ones(2)
    with pytest.raises(InputError, match="every row and every column needs a cell"):
        transport_cells(np.array([0, 0]), np.array([0, 1]), np.zeros(2), 0.5, 0.1, one, one)
    with pytest.raises(InputError, match="got 2, 1 and 2"):
        transport_cells(np.array([0, 1]), np.array([0]), np.zeros(2), 0.5, 0.1, one, one)
