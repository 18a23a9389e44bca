"""The losses that believe the given pairs, by name: what configurations choose from.

Letters: n pairs, scores (n, n) with the given pairs on the diagonal.
"""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from mispair.errors import InputError
from mispair.functional.contrastive_losses import info_nce, sigmoid_loss, symmetric_cross_entropy
from mispair.functional.ranking_losses import triplet

PairLoss = Literal["triplet", "infonce", "infonce_rce", "sigmoid"]


def pair_loss(scores: Tensor, kind: PairLoss, margin: float = 0.2, temperature: float = 0.05) -> Tensor:
    """The named loss of every pair, (n, n) -> (n,).

    Hardest-negative triplet, InfoNCE, ½ (InfoNCE + reverse CE), or SigLIP's sigmoid of every cell.
    """
    if kind == "triplet":
        return triplet(scores, margin)
    if kind == "infonce":
        return info_nce(scores, temperature)
    if kind == "sigmoid":
        return sigmoid_loss(scores, temperature)
    if kind != "infonce_rce":
        raise InputError(f"kind must be triplet, infonce, infonce_rce or sigmoid, got {kind!r}")
    return symmetric_cross_entropy(scores, temperature)
