"""Ranking losses: a given pair must beat the other partners of its row and its column by a margin.

Letters: n pairs; scores (n, n), images are rows, captions columns, the given pairs on the diagonal. A margin is a
number or one per pair; it follows the anchor: m_i for the captions competing for image i, m_j for the images
competing for caption j.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from mispair.errors import InputError

Negatives = Literal["hardest", "mean", "top_k"]
MarginCurve = Literal["exponential", "linear", "sine"]


def hinge_costs(scores: Tensor, margin: float | Tensor) -> tuple[Tensor, Tensor]:
    """Violations of the margin by every negative, both ways, zero on the diagonal: (n, n) -> (n, n), (n, n).

    captions_ij = [m_i + S_ij - S_ii]_+ and images_ij = [m_j + S_ij - S_jj]_+ (L2RM Eq. 2, before choosing negatives).
    """
    n = check_square(scores)
    given = scores.diagonal()
    if isinstance(margin, Tensor) and margin.ndim > 0:
        if margin.shape != (n,):  # (n, 1) would broadcast to the wrong anchor and still train
            raise InputError(f"margin must be a number or one value per pair, shape ({n},), got {tuple(margin.shape)}")
        row_margin, col_margin = margin.unsqueeze(1), margin.unsqueeze(0)
    else:
        row_margin = col_margin = torch.as_tensor(margin, dtype=scores.dtype, device=scores.device)
    own = torch.eye(n, dtype=torch.bool, device=scores.device)
    captions = (row_margin + scores - given.unsqueeze(1)).clamp(min=0).masked_fill(own, 0)
    images = (col_margin + scores - given.unsqueeze(0)).clamp(min=0).masked_fill(own, 0)
    return captions, images


def triplet(
    scores: Tensor, margin: float | Tensor = 0.2, negatives: Negatives = "hardest", k: int | None = None
) -> Tensor:
    """Triplet loss of every pair, both directions added: (n, n) -> (n,). The caller reduces.

    `negatives` chooses who counts: the hardest of the batch (L2RM Eq. 2; VSE++), the mean over the batch (divided by
    n, the given pair's zero included, as the split signal of NCR and L2RM is computed), or the mean of the `k`
    hardest (DECL's dynamic hinge; k is cut to the n - 1 there are).
    """
    captions, images = hinge_costs(scores, margin)
    n = scores.shape[0]
    if negatives == "hardest":
        return captions.amax(1) + images.amax(0)
    if negatives == "mean":
        return captions.mean(1) + images.mean(0)
    if negatives != "top_k":
        raise InputError(f"negatives must be hardest, mean or top_k, got {negatives!r}")
    if k is None or k < 1:
        raise InputError(f"negatives='top_k' needs k of at least 1, got {k}")
    k = min(k, max(n - 1, 1))
    return captions.topk(k, 1).values.mean(1) + images.topk(k, 0).values.mean(0)


def triplet_by_cell(scores: Tensor, margins: Tensor) -> Tensor:
    """Hardest-negative triplet with a margin for every cell, used in both directions: (n, n), (n, n) -> (n,).

    Published code of NCR and BiCro broadcasts its margins to such a matrix by accident, so that a negative is held to
    the margin of the wrong anchor. Only for reproducing that.
    """
    n = check_square(scores)
    if margins.shape != scores.shape:
        raise InputError(f"margins must be one per cell, shape ({n}, {n}), got {tuple(margins.shape)}")
    given = scores.diagonal()
    own = torch.eye(n, dtype=torch.bool, device=scores.device)
    captions = (margins + scores - given.unsqueeze(1)).clamp(min=0).masked_fill(own, 0)
    images = (margins + scores - given.unsqueeze(0)).clamp(min=0).masked_fill(own, 0)
    return captions.amax(1) + images.amax(0)


def on_plateau(mean_loss: float, margin: float) -> bool:
    """Whether a hardest-negative triplet rests where all scores are equal: 2 · margin per pair.

    Training starts there and can stay for epochs; a batch of 128 with margin 0.2 then sums to 51.2.
    """
    return abs(mean_loss - 2 * margin) < 0.02 * margin


PLATEAU = (
    "the triplet loss rests at 2 x margin per pair: the network scores everything alike. That is normal for the first "
    "epochs with hardest negatives; if it lasts, start with mean negatives or InfoNCE for a few epochs"
)


def soft_margin(margin: float, label: Tensor, curve: MarginCurve = "exponential") -> Tensor:
    """The margin a pair deserves when it matches with probability `label`: (n,) in [0, 1] -> (n,) in [0, margin].

    exponential α(10^y - 1)/9 (NCR and BiCro), linear αy, sine α(½ sin(πy - π/2) + ½).
    """
    if label.ndim != 1:  # (n, 1) would broadcast to (n, n) in the loss
        raise InputError(f"label must be one value per pair, shape (n,), got {tuple(label.shape)}")
    if curve == "exponential":
        return margin * (10**label - 1) / 9
    if curve == "linear":
        return margin * label
    if curve != "sine":
        raise InputError(f"curve must be exponential, linear or sine, got {curve!r}")
    return margin * (0.5 * torch.sin(math.pi * label - math.pi / 2) + 0.5)


def smallest(losses: Tensor, share: float, weights: Tensor | None = None) -> Tensor:
    """The floor(share · n) smallest losses of a batch, (n,) -> (k,), at least one (BiCro's selective warm-up).

    Weights (n,) multiply the losses that were chosen; they do not choose.
    """
    if not 0 < share <= 1:
        raise InputError(f"share must be in (0, 1], got {share}")
    chosen = losses.topk(max(1, math.floor(share * losses.shape[0])), largest=False)
    return chosen.values if weights is None else chosen.values * weights[chosen.indices]


def check_square(scores: Tensor) -> int:
    """n of an (n, n) score matrix; anything else is refused."""
    if scores.ndim != 2 or scores.shape[0] != scores.shape[1] or scores.shape[0] == 0:
        raise InputError(f"scores must be (n, n) with the given pairs on the diagonal, got {tuple(scores.shape)}")
    return scores.shape[0]
