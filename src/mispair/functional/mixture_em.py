"""EM for two-component mixtures on a histogram, several fits side by side.

Letters: K histogram bins, S starting points (or bootstrap samples).

On a histogram the cost does not grow with the number of losses. Both families are exponential with two sufficient
statistics T: (log x, log(1 - x)) for Beta, (x, x²) for Gauss. Each bin keeps its count and its mean T, so that only
the responsibilities inside one bin are approximated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from mispair.functional.mixture_families import (
    Family,
    from_moments,
    most_likely,
    natural,
    normaliser,
    statistics,
    widened,
)


@dataclass(frozen=True, slots=True)
class Bins:
    """A histogram that remembers what is inside its bins."""

    counts: Tensor  # (K,)
    centres: Tensor  # (K,) mean normalised loss of each bin
    statistics: Tensor  # (K, 2) mean T of each bin


def histogram(family: Family, x: Tensor, bins: int) -> Bins:
    """Normalised losses x (N,) in `bins` equal bins, empty ones left out."""
    index = (x * bins).long().clamp_(max=bins - 1).numpy()
    counts = np.bincount(index, minlength=bins)
    used = counts > 0
    per_bin = [
        torch.from_numpy(np.bincount(index, weights=values.numpy(), minlength=bins)[used] / counts[used])
        for values in (x, *statistics(family, x).unbind(-1))
    ]
    return Bins(torch.from_numpy(counts[used]).double(), per_bin[0], torch.stack(per_bin[1:], -1))


def log_joint(family: Family, bins: Bins, weights: Tensor, parameters: Tensor) -> Tensor:
    """log(weight · density) of each bin under each component: (S, 2), (S, 2, 2) -> (S, 2, K)."""
    level = weights.clamp(min=1e-12).log() - normaliser(family, parameters)
    return natural(family, parameters) @ bins.statistics.T + level.unsqueeze(-1)


def em(
    family: Family, bins: Bins, counts: Tensor, weights: Tensor, parameters: Tensor, tol: float, max_iter: int
) -> tuple[Tensor, Tensor, Tensor, bool, int]:
    """Fit S mixtures side by side: counts (S, K), weights (S, 2), parameters (S, 2, 2) -> the same, and (S,).

    EM crawls where the components overlap, so every two steps are followed by a jump along them (SQUAREM, Varadhan
    and Roland 2008), which is kept only where it raises the likelihood: that never falls.
    """
    share = counts / counts.sum(-1, keepdim=True)
    likelihood = _likelihood(family, bins, share, weights, parameters)
    for iteration in range(2, max_iter + 2, 2):
        start = _free(family, weights, parameters)
        first = _em_step(family, bins, share, weights, parameters)
        second = _em_step(family, bins, share, *first)
        step = _free(family, *first) - start
        bend = _free(family, *second) - start - 2 * step
        reach = (step.norm(dim=-1) / bend.norm(dim=-1).clamp(min=1e-12)).clamp(1, 128).unsqueeze(-1)
        jump = _bound(family, start + 2 * reach * step + reach**2 * bend)
        candidates = [
            (_likelihood(family, bins, share, *c).nan_to_num(-math.inf), *c)
            for c in ((weights, parameters), second, jump)
        ]
        scores = torch.stack([c[0] for c in candidates])
        best = scores.argmax(0)
        weights = torch.stack([c[1] for c in candidates])[best, torch.arange(len(best))]
        parameters = torch.stack([c[2] for c in candidates])[best, torch.arange(len(best))]
        gain, likelihood = scores.amax(0) - likelihood, scores.amax(0)
        if bool((gain <= tol).all()):
            return weights, parameters, likelihood, True, min(iteration, max_iter)
    return weights, parameters, likelihood, False, max_iter


def _em_step(family: Family, bins: Bins, share: Tensor, weights: Tensor, parameters: Tensor) -> tuple[Tensor, Tensor]:
    claimed = torch.softmax(log_joint(family, bins, weights, parameters), -2) * share.unsqueeze(-2)  # (S, 2, K)
    weights = claimed.sum(-1)
    target = claimed @ bins.statistics / weights.clamp(min=1e-12).unsqueeze(-1)
    return weights, most_likely(family, target, parameters)


def _likelihood(family: Family, bins: Bins, share: Tensor, weights: Tensor, parameters: Tensor) -> Tensor:
    return (share * torch.logsumexp(log_joint(family, bins, weights, parameters), -2)).sum(-1)


def _free(family: Family, weights: Tensor, parameters: Tensor) -> Tensor:
    """The five numbers of a mixture without their bounds, (S, 5): a jump cannot leave what they can be."""
    odds = (weights[:, :1].clamp(min=1e-12) / weights[:, 1:].clamp(min=1e-12)).log()
    inner = parameters.log() if family == "beta" else torch.stack([parameters[..., 0], parameters[..., 1].log()], -1)
    return torch.cat([odds, inner.flatten(1)], 1)


def _bound(family: Family, free: Tensor) -> tuple[Tensor, Tensor]:
    """The mixture with these five numbers: the inverse of `_free`."""
    odds, inner = free[:, 0].clamp(-25, 25), free[:, 1:].reshape(-1, 2, 2)
    weights = torch.stack([torch.sigmoid(odds), torch.sigmoid(-odds)], -1)
    if family == "beta":
        return weights, widened(family, inner.clamp(-10, 12).exp())
    return weights, widened(family, torch.stack([inner[..., 0], inner[..., 1].clamp(-4, 4).exp()], -1))


def starts(family: Family, bins: Bins) -> tuple[Tensor, Tensor]:
    """Deterministic starting points: cut the losses in two at the best 2-means cut and at three quantiles."""
    x, share = bins.centres, bins.counts / bins.counts.sum()
    below = share.cumsum(0)
    mass_x = (share * x).cumsum(0)
    between = (mass_x[-1] * below - mass_x) ** 2 / (below * (1 - below)).clamp(min=1e-12)
    cuts = [int(between[:-1].argmax()), *(int(torch.searchsorted(below, q)) for q in (0.25, 0.5, 0.75))]
    weights, parameters = [], []
    for cut in sorted({min(max(c, 0), len(x) - 2) for c in cuts}):
        sides = (share[: cut + 1], x[: cut + 1]), (share[cut + 1 :], x[cut + 1 :])
        weights.append(torch.stack([s.sum() for s, _ in sides]))
        mean = torch.stack([(s * v).sum() / s.sum() for s, v in sides])
        variance = torch.stack([(s * (v - m) ** 2).sum() / s.sum() for (s, v), m in zip(sides, mean, strict=True)])
        parameters.append(from_moments(family, mean, variance))
    return torch.stack(weights), torch.stack(parameters)
