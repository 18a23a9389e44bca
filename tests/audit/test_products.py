"""Ranks and partners from chunked products equal the slow way over the whole matrix."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mispair.audit import products
from mispair.audit.products import best_partners, cell_ranks, cell_scores


@pytest.fixture
def sides():
    rng = torch.Generator().manual_seed(0)
    return torch.randn(53, 7, generator=rng), torch.randn(101, 7, generator=rng)


@pytest.mark.parametrize("chunk", [1, 131, 1 << 19])
def test_ranks_equal_the_slow_way(sides, monkeypatch, chunk):
    monkeypatch.setattr(products, "_CACHED", chunk)
    a, b = sides
    b[17] = b[5]  # a tie counts against
    matrix = (a @ b.T).numpy()
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(53, size=211), rng.integers(101, size=211)
    cols[:3] = 5
    scores = cell_scores(a, b, rows, cols)
    assert np.allclose(scores, matrix[rows, cols], atol=1e-5)
    slow = [
        1 + sum(matrix[r, other] >= matrix[r, c] - 1e-6 for other in range(101) if other != c)
        for r, c in zip(rows, cols, strict=True)
    ]
    assert cell_ranks(a, b, rows, cols, scores).tolist() == slow


def test_ranks_of_a_sample_are_close(monkeypatch):
    rng = torch.Generator().manual_seed(0)
    a, b = torch.randn(31, 5, generator=rng), torch.randn(4001, 5, generator=rng)
    rows, cols = np.repeat(np.arange(31), 3), np.arange(93) * 40
    scores = cell_scores(a, b, rows, cols)
    exact = cell_ranks(a, b, rows, cols, scores)
    monkeypatch.setattr(products, "REFERENCE", 1000)
    assert np.abs(cell_ranks(a, b, rows, cols, scores) - exact).max() < 0.06 * 4001


def test_partners_equal_sorting(sides, monkeypatch):
    monkeypatch.setattr(products, "_CHUNK", 300)
    a, b = sides
    values, indices = best_partners(a, b, 4)
    slow = (a @ b.T).sort(1, descending=True)
    assert torch.allclose(values, slow.values[:, :4], atol=1e-6)
    assert torch.equal(indices, slow.indices[:, :4])
    assert best_partners(a, b[:2], 4)[1].shape == (53, 2)
