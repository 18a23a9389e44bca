"""Contrastive losses: the given partner against the rest of its row and its column, as probabilities.

Letters: n pairs, scores (n, n), images are rows, captions columns, the given pairs on the diagonal; τ temperature;
p^v2t is the softmax over captions of a row, p^t2v over images of a column. Every loss is per pair and adds both
directions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import softplus

from mispair.errors import InputError
from mispair.functional.ranking_losses import check_square

Complement = Literal["log", "tan", "abs", "exp", "gce"]


def log_probabilities(scores: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """log p^v2t and log p^t2v, both laid out images x captions: (n, m) -> (n, m), (n, m) (L2RM Sec. 3.2)."""
    if not temperature > 0:
        raise InputError(f"temperature must be positive, got {temperature}")
    logits = scores / temperature
    return logits.log_softmax(1), logits.log_softmax(0)


def info_nce(scores: Tensor, temperature: float = 0.05) -> Tensor:
    """InfoNCE, -log p^v2t_ii - log p^t2v_ii: (n, n) -> (n,) (L2RM Eq. 3)."""
    check_square(scores)
    v2t, t2v = log_probabilities(scores, temperature)
    return -v2t.diagonal() - t2v.diagonal()


def reverse_cross_entropy(scores: Tensor, temperature: float = 0.05, floor: float = 1e-7) -> Tensor:
    """Cross entropy with prediction and label swapped: (n, n) -> (n,) (L2RM Eq. 5).

    The one-hot label is clipped to [floor, 1 - floor]; off the diagonal its -log is 16.118 for the paper's 1e-7. The
    loss is bounded, so a mismatched pair cannot dominate.
    """
    check_square(scores)
    if not 0 < floor < 0.5:
        raise InputError(f"floor must be in (0, 0.5), got {floor}")
    wrong, right = -math.log(floor), -math.log1p(-floor)
    v2t, t2v = log_probabilities(scores, temperature)
    given = v2t.diagonal().exp() + t2v.diagonal().exp()
    return 2 * wrong + (right - wrong) * given


def symmetric_cross_entropy(scores: Tensor, temperature: float = 0.05) -> Tensor:
    """½ (InfoNCE + reverse cross entropy): (n, n) -> (n,), L2RM's warm-up as released (the paper adds them whole)."""
    return 0.5 * (info_nce(scores, temperature) + reverse_cross_entropy(scores, temperature))


def sigmoid_loss(scores: Tensor, temperature: float = 0.05) -> Tensor:
    """Every cell a yes-or-no question, yes on the diagonal alone, the mean of both directions: (n, n) -> (n,) (SigLIP).

    The sum over the negatives of a pair is not divided by n; the bias of the logits is the model's to learn.
    """
    check_square(scores)
    if not temperature > 0:
        raise InputError(f"temperature must be positive, got {temperature}")
    logits = scores / temperature
    refused = softplus(logits)
    refused = refused - torch.diag(refused.diagonal())
    return softplus(-logits.diagonal()) + 0.5 * (refused.sum(1) + refused.sum(0))


def complementary(
    scores: Tensor,
    temperature: float = 0.05,
    kind: Complement = "log",
    negatives: Tensor | None = None,
    q: float = 0.5,
) -> Tensor:
    """Push the negatives away instead of pulling the given partner: (n, n) -> (n,) (RCL, complementary contrast).

    log: -log(1 - p); tan: tan p; abs: p; exp: exp(p - 1); gce: (1 - (1 - p)^q) / q; summed over the negatives of the
    row, and of the column. `negatives` (n, n) bool limits them: row i says which others count against image i, and
    which against caption i (RCL draws a share of each row at random); by default all but the given partner count.
    """
    n = check_square(scores)
    if kind not in _COMPLEMENTS:
        raise InputError(f"kind must be one of {', '.join(_COMPLEMENTS)}, got {kind!r}")
    others = ~torch.eye(n, dtype=torch.bool, device=scores.device)
    if negatives is not None:
        if negatives.shape != scores.shape or negatives.dtype != torch.bool:
            raise InputError(f"negatives must be bool of shape {tuple(scores.shape)}, got {tuple(negatives.shape)}")
        others = others & negatives
    penalty = _COMPLEMENTS[kind]
    v2t, t2v = log_probabilities(scores, temperature)
    along_rows = penalty(v2t.exp().masked_fill(~others, 0), q).masked_fill(~others, 0).sum(1)
    along_columns = penalty(t2v.exp().T.masked_fill(~others, 0), q).masked_fill(~others, 0).sum(1)
    return along_rows + along_columns


def active_complementary(scores: Tensor, label: Tensor, temperature: float = 0.05, weight: float = 5.0) -> Tensor:
    """Pull the given partner as far as the label says, push the negatives: (n, n), (n,) -> (n,) (CRCL, Eq. 1).

    y_i (-log p^v2t_ii - log p^t2v_ii), plus `weight` times Σ_{j≠i} tan p_ij / (Σ_j tan p_ij)^(1 - y_i) of both
    directions. A pair of label 0 learns from its negatives alone.
    """
    n = check_square(scores)
    if label.shape != (n,):  # (n, 1) would broadcast to (n, n)
        raise InputError(f"label must be one value per pair, shape ({n},), got {tuple(label.shape)}")
    v2t, t2v = log_probabilities(scores, temperature)
    active = label * (-v2t.diagonal() - t2v.diagonal())
    pushed = torch.zeros_like(active)
    for p in (v2t.exp(), t2v.exp().T):
        curved = p.tan()
        others = curved.sum(1) - curved.diagonal()
        pushed = pushed + others / curved.sum(1) ** (1 - label)
    return active + weight * pushed


_COMPLEMENTS: dict[str, Callable[[Tensor, float], Tensor]] = {
    "log": lambda p, q: -(1 - p + 1e-10).log(),  # p can round to 1 in float32
    "tan": lambda p, q: p.tan(),
    "abs": lambda p, q: p,
    "exp": lambda p, q: (p - 1).exp(),
    "gce": lambda p, q: (1 - (1 - p + 1e-10) ** q) / q,
}
