"""Unit length along an axis, forwards and backwards; what the published models divide by.

The slow version that proves it: `l2norm` in tests/model_oracles.py.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mispair.models.kernels.autograd import differentiable

EPS = 1e-8  # added to a norm, not used as its floor, as the published models do
TINY = 1e-30  # a floor for divisors that are zero only where the numerator is


def l2(x: Tensor, dim: int = -1) -> Tensor:
    """x / (|x| + 1e-8) along `dim`: zero stays zero."""
    return differentiable(_UnitLength, x, dim)


def l2_backward(grad: Tensor, unit: Tensor, norm: Tensor, dim: int = -1) -> Tensor:
    """Gradient of `l2`'s input from that of its result, the result and the length before."""
    along = torch.linalg.vecdot(grad, unit, dim=dim).unsqueeze(dim) / norm.clamp_min(TINY)
    return (grad / (norm + EPS)).addcmul_(unit, along, value=-1)


class _UnitLength(torch.autograd.Function):
    """Keeps the result, which others keep too, instead of the input."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int) -> Tensor:
        norm: Tensor = torch.linalg.vector_norm(x, dim=dim, keepdim=True)
        unit = x / (norm + EPS)
        ctx.dim = dim
        ctx.save_for_backward(unit, norm)
        return unit

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        unit, norm = ctx.saved_tensors
        return l2_backward(grad, unit, norm, ctx.dim), None
