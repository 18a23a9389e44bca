"""Canonical maps: pairs find each other in the space found, mismatched ones cost less where the others are asked."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mispair.functional.canonical import canonical_maps, trusted_maps

PAIRS, WIDTH = 600, 24


def planted(rate: float) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    """Two noisy linear views of hidden numbers, the first `rate` share of the second one rolled by a pair."""
    rng = torch.Generator().manual_seed(0)
    hidden = torch.randn(PAIRS, 6, generator=rng)
    first, second = (
        hidden @ torch.randn(6, width, generator=rng) + 0.7 * torch.randn(PAIRS, width, generator=rng)
        for width in (WIDTH, WIDTH - 5)
    )
    wrong = np.arange(PAIRS) < rate * PAIRS
    order = np.arange(PAIRS)
    order[wrong] = np.roll(order[wrong], 1)
    return first + 3, second[order] - 2, wrong


def found(first: torch.Tensor, second: torch.Tensor, maps, right: np.ndarray) -> float:
    scores = maps[0].map(first[right]) @ maps[1].map(second[right]).T
    return float((scores.argmax(1) == torch.arange(len(scores))).float().mean())


def test_clean_pairs_find_each_other():
    first, second, wrong = planted(0.0)
    maps = canonical_maps(first, second, torch.ones(PAIRS), 16)
    assert maps[0].basis.shape == (WIDTH, 16)
    assert maps[0].weight.shape == maps[1].weight.shape == (16, 16)
    assert found(first, second, maps, ~wrong) > 0.5
    torch.testing.assert_close(maps[0].map(first).norm(dim=1), torch.ones(PAIRS))


@pytest.mark.parametrize("rate", [0.4, 0.6])
def test_asking_the_others_tells_wrong_pairs_and_maps_better(rate):
    first, second, wrong = planted(rate)
    given = canonical_maps(first, second, torch.ones(PAIRS), 16)
    maps, trust = trusted_maps(first, second, np.arange(PAIRS), np.ones(PAIRS), 16)
    assert trust[~wrong].mean() - trust[wrong].mean() > 0.6
    assert found(first, second, maps, ~wrong) > found(first, second, given, ~wrong) + 0.02


def test_pairs_of_no_weight_say_nothing():
    first, second, wrong = planted(0.4)
    weight = torch.from_numpy(~wrong).float()
    known = canonical_maps(first, second, weight, 16)
    broken = second.clone()
    broken[wrong] = 1e3
    again = canonical_maps(first, broken, weight, 16)
    torch.testing.assert_close(again[1].map(second), known[1].map(second), rtol=0, atol=1e-3)
