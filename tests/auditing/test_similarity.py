"""Ranks and partners from chunked products equal the slow way over the whole matrix."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mispair.auditing import similarity
from mispair.auditing.similarity import best_partners, cell_scores, stand_in_rows


@pytest.fixture
def sides():
    rng = torch.Generator().manual_seed(0)
    return torch.randn(53, 7, generator=rng), torch.randn(101, 7, generator=rng)


@pytest.mark.parametrize("chunk", [1, 131, 1 << 19])
def test_ranks_equal_the_slow_way(sides, monkeypatch, chunk):
    monkeypatch.setattr(similarity, "_CACHED", chunk)
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
    assert stand_in_rows(a, b, rows, cols, scores).rank.tolist() == slow


def test_ranks_of_a_sample_are_close(monkeypatch):
    rng = torch.Generator().manual_seed(0)
    a, b = torch.randn(31, 5, generator=rng), torch.randn(4001, 5, generator=rng)
    rows, cols = np.repeat(np.arange(31), 3), np.arange(93) * 40
    scores = cell_scores(a, b, rows, cols)
    exact = stand_in_rows(a, b, rows, cols, scores)
    monkeypatch.setattr(similarity, "REFERENCE", 1000)
    found = stand_in_rows(a, b, rows, cols, scores)
    assert np.abs(found.rank - exact.rank).max() < 0.06 * 4001


@pytest.mark.parametrize("chunk", [1, 1 << 19])
def test_rivals_are_the_soft_maximum_of_the_others_and_never_below_the_median(sides, monkeypatch, chunk):
    monkeypatch.setattr(similarity, "_CACHED", chunk)
    a, b = sides
    matrix = (a @ b.T).double()
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(53, size=211), rng.integers(101, size=211)
    rows[:53] = np.arange(53)  # all rows have a say in the median
    found = stand_in_rows(a, b, rows, cols, cell_scores(a, b, rows, cols)).rivals
    temperature = similarity._SOFT * float(matrix.std())
    median = np.quantile((temperature * (matrix / temperature).logsumexp(1)).numpy(), 0.5)
    for k, (r, c) in enumerate(zip(rows, cols, strict=True)):
        others = torch.cat([matrix[r, :c], matrix[r, c + 1 :]])
        soft = float(temperature * (others / temperature).logsumexp(0))
        assert found[k] == pytest.approx(max(soft, median), abs=1e-3)


def test_partners_equal_sorting(sides, monkeypatch):
    monkeypatch.setattr(similarity, "_CHUNK", 300)
    a, b = sides
    values, indices = best_partners(a, b, 4)
    slow = (a @ b.T).sort(1, descending=True)
    assert torch.allclose(values, slow.values[:, :4], atol=1e-6)
    assert torch.equal(indices, slow.indices[:, :4])
    assert best_partners(a, b[:2], 4)[1].shape == (53, 2)
