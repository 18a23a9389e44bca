"""Evidence that a query has a partner, as a Dirichlet distribution over the batch (DECL).

Letters: n queries (rows) against m candidates; evidence e (n, m) > 0; α = e + 1; S its row sum; y (n, m) the target,
one-hot on the given partner or all zero when the pair is believed mismatched.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mispair.errors import InputError
from mispair.functional.ranking_losses import check_square


def evidence(logits: Tensor, temperature: float = 0.1) -> Tensor:
    """Evidence of raw logits, exp(tanh(r) / τ), any shape (DECL, evidence extractor)."""
    if not temperature > 0:
        raise InputError(f"temperature must be positive, got {temperature}")
    return torch.exp(torch.tanh(logits) / temperature)


def uncertainty(evidence: Tensor) -> Tensor:
    """How little a query knows, m / S in (0, 1]: (n, m) -> (n,)."""
    return evidence.shape[-1] / (evidence + 1).sum(-1)


def rivalry(evidence: Tensor) -> Tensor:
    """How far another candidate outdoes the given partner, in [0, 1]: (n, n) -> (n,) (DECL, noise self-filtering).

    With E = e + eᵀ, both directions together: the largest other entry of row i over its sum with E_ii. Above ½ exactly
    where the argmax of the row is not i; equal evidence is no reason to doubt a pair.
    """
    check_square(evidence)
    both = evidence + evidence.T
    own = both.diagonal()
    other = both.masked_fill(torch.eye(len(both), dtype=torch.bool, device=both.device), 0).amax(1)
    return other / (own + other)


def dirichlet_loss(evidence: Tensor, target: Tensor, kl_weight: float = 0.1) -> Tensor:
    """Squared error of the expected Dirichlet plus its variance plus KL of the wrong evidence: (n, m) -> (n,).

    Σ_j (y_j - α_j/S)² + Σ_j α_j(S - α_j) / (S²(S + 1)) + λ KL[Dir(α̃) ‖ Dir(1)], α̃ = y + (1 - y)α (DECL, cross-modal
    evidential loss; one direction: pass the transposed matrices for the other).
    """
    if evidence.ndim != 2 or evidence.shape != target.shape:
        raise InputError(
            f"evidence and target must be alike (n, m), got {tuple(evidence.shape)} and {tuple(target.shape)}"
        )
    alpha = evidence + 1
    total = alpha.sum(-1, keepdim=True)
    expected = alpha / total
    error = (target - expected).square().sum(-1)
    spread = (expected * (1 - expected) / (total + 1)).sum(-1)
    return error + spread + kl_weight * _kl_to_ignorance(target + (1 - target) * alpha)


def _kl_to_ignorance(alpha: Tensor) -> Tensor:
    """KL[Dir(α) ‖ Dir(1)], (n, m) -> (n,)."""
    total = alpha.sum(-1, keepdim=True)
    known = (
        torch.lgamma(total).squeeze(-1) - torch.lgamma(alpha).sum(-1) - torch.lgamma(alpha.new_tensor(alpha.shape[-1]))
    )
    return known + ((alpha - 1) * (torch.digamma(alpha) - torch.digamma(total))).sum(-1)
