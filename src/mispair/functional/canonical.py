"""A common space of two sides in closed form: canonical correlation of given pairs, with a ridge.

Hotelling 1936; the ridge is that of Vinod 1976. Of vectors whose towers never saw each other, it finds the directions
in which pairs agree. Mismatched pairs make the agreement smaller and its directions noisier, not wrong; with a trust
per pair they count less.

Letters: N pairs, F width of a side, K directions kept of it, D width of the common space.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from mispair.functional.known_null import posterior_mismatched
from mispair.functional.leave_one_out import disagreement_with_others

RIDGES = (1.0, 3.0, 10.0, 30.0, 100.0)  # of the first side, in units of its mean eigenvalue; the second has a tenth
_HELD_OUT = 5  # one pair in so many chooses the ridge
_MOST_JUDGED = 1000  # of them


class SideMap(NamedTuple):
    """Of a vector x, ((x - mean) @ basis) @ weight lies in the common space."""

    mean: Tensor  # (F,)
    basis: Tensor  # (F, K) whitened directions, the widest first
    weight: Tensor  # (K, D)

    def map(self, vectors: Tensor) -> Tensor:
        """(N, F) -> (N, D) of length 1."""
        return normalize((vectors - self.mean) @ (self.basis @ self.weight), dim=1)


def canonical_maps(first: Tensor, second: Tensor, trust: Tensor, width: int) -> tuple[SideMap, SideMap]:
    """Maps of both sides (N, F), (N, F') into a space at most `width` wide; trust (N,), 0 to 1.

    The ridge is the one under which held-out pairs find each other best.
    """
    held = torch.arange(len(first)) % _HELD_OUT == _HELD_OUT - 1
    fitted, judged = (~held).nonzero()[:, 0], held.nonzero()[:_MOST_JUDGED, 0]
    best, ridge = -1.0, RIDGES[0]
    if len(judged) > 1:
        moments = _Moments(first[fitted], second[fitted], trust[fitted])
        for candidate in RIDGES:
            maps = moments.solve(candidate, width)
            agreement = _agreement(maps[0].map(first[judged]), maps[1].map(second[judged]), trust[judged])
            if agreement > best:
                best, ridge = agreement, candidate
    return _Moments(first, second, trust).solve(ridge, width)


def trusted_maps(
    first: Tensor,
    second: Tensor,
    image_of: NDArray[np.int64],
    weight: NDArray[np.float64],
    width: int,
    *,
    rounds: int = 3,
    judgings: int = 2,
) -> tuple[tuple[SideMap, SideMap], NDArray[np.float64]]:
    """The maps by the pairs that all others vouch for, and how far each pair is trusted, (N,), times its weight (N,).

    Pairs are judged by those left out (`leave_one_out`), first as they came, then in the space found so far:
    `rounds` of finding a space and judging pairs in it, so many `judgings` in each, with the trust of the one before.
    """
    seen, said, trust = first, second, weight
    for _ in range(rounds):
        for _ in range(judgings):
            evidence = disagreement_with_others(seen.numpy(), said.numpy(), image_of, trust, np.random.default_rng(0))
            trust = (1 - posterior_mismatched(evidence.given, evidence.repaired)) * weight
        maps = canonical_maps(first, second, torch.from_numpy(trust).float(), width)
        seen, said = (first - maps[0].mean) @ maps[0].basis, maps[1].map(second)
    return maps, trust


class _Moments:
    """Weighted means and covariances of both sides, turned to the axes of each."""

    def __init__(self, first: Tensor, second: Tensor, trust: Tensor) -> None:
        share = (trust / trust.sum().clamp(min=1e-12)).to(first.dtype)[:, None]
        self.means = (share * first).sum(0), (share * second).sum(0)
        sides = first - self.means[0], second - self.means[1]
        self.axes = [torch.linalg.eigh(((side * share).T @ side).double()) for side in sides]
        turned = [side @ axes.eigenvectors.to(side.dtype) for side, axes in zip(sides, self.axes, strict=True)]
        self.cross = (turned[0] * share).T @ turned[1]

    def solve(self, ridge: float, width: int) -> tuple[SideMap, SideMap]:
        scales = []
        for axes, shrinkage in zip(self.axes, (ridge, ridge / 10), strict=True):
            values = axes.eigenvalues.clamp(min=0)
            scales.append(((values + shrinkage * values.mean()).clamp(min=1e-12) ** -0.5).to(self.cross.dtype))
        left, agreement, right = torch.linalg.svd(scales[0][:, None] * self.cross * scales[1], full_matrices=False)
        strength = agreement[:width].sqrt()
        made = []
        for mean, axes, scale, turn in zip(self.means, self.axes, scales, (left, right.T), strict=True):
            kept = torch.argsort(axes.eigenvalues, descending=True)[:width]
            basis = (axes.eigenvectors.to(scale.dtype) * scale)[:, kept]
            weight = turn[kept, :width] * strength
            made.append(SideMap(mean, basis, weight * (weight.shape[1] ** 0.5 / weight.norm().clamp(min=1e-12))))
        return made[0], made[1]


def _agreement(images: Tensor, texts: Tensor, trust: Tensor) -> float:
    """Mean reciprocal rank of the partners, both ways, as far as the pairs are trusted."""
    scores = images @ texts.T
    own = scores.diagonal()
    ranks = [(scores > own[:, None]).sum(1), (scores > own[None]).sum(0)]
    weight = trust / trust.sum().clamp(min=1e-12)
    return float(sum((weight / (1 + rank)).sum() for rank in ranks))
