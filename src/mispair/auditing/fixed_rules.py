"""How others tell mismatched pairs, on vectors of one space: a cosine and two ways to mend it. All suspicion, (N,).

None of them has a decision of its own: people keep what lies above a fixed cosine, or the best 30 %.

Letters: N pairs, d width; a and b (N, d) unit vectors, row k of one with row k of the other.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mispair.auditing.similarity import best_partners

Floats = NDArray[np.float64]

_BATCH = 4096  # rows a soft maximum is taken over


def cosine_distance(a: Tensor, b: Tensor) -> Floats:
    """Minus the cosine. Kept are pairs above .25 (DataComp), above .28 (LAION), or the best 30 % (DataComp)."""
    return -(a * b).sum(1).double().numpy()


def neg_clip_loss(a: Tensor, b: Tensor, temperature: float = 0.01) -> Floats:
    """The soft maxima of a pair's row and column less its score, over random batches (negCLIPLoss, NeurIPS 2024)."""
    order = torch.from_numpy(np.random.default_rng(0).permutation(len(a)))
    losses = torch.empty(len(a))
    for start in range(0, len(a), _BATCH):
        rows = order[start : start + _BATCH]
        scores = a[rows] @ b[rows].T / temperature
        soft = scores.logsumexp(1) + scores.logsumexp(0)
        losses[rows] = temperature * (soft / 2 - scores.diagonal())
    return losses.double().numpy()


def lemon(a: Tensor, b: Tensor, k: int = 30) -> Floats:
    """LEMoN (ICML 2025) with its fixed values: distance of the pair, of its text to texts of like images, of its image
    to images of like texts; neighbours that are far from their own partners count less."""
    own = 1 - (a * b).sum(1)

    def neighbours(like: Tensor, other: Tensor) -> Tensor:
        closeness, who = best_partners(like, like, k + 1)
        closeness, who = closeness[:, 1:], who[:, 1:]  # the first is the item itself
        apart = torch.stack([1 - (other[column] * other).sum(1) for column in who.T], 1)
        return (apart * torch.exp(-0.1 * (1 - closeness)) * torch.exp(-5.0 * own[who])).mean(1)

    return (own + 5 * neighbours(a, b) + 5 * neighbours(b, a)).double().numpy()


def all_but_best(suspicion: Floats, share: float = 0.3) -> NDArray[np.bool_]:
    """Who is called mismatched where the best `share` is kept."""
    return np.asarray(suspicion > np.quantile(suspicion, share))
