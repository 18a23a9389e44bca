"""Masked means, norms, softmax and dropout: the arithmetic every backbone shares. Letters as in `mispair.types`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from mispair.models.autograd import differentiable

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


class Dropout(nn.Dropout):
    """torch's, with a mask of bytes on a CPU too, where its own keeps one of floats."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.native_dropout(x, self.p, True)[0] if self.training and self.p else x


def masked_mean(x: Tensor, mask: Tensor) -> Tensor:
    """x (N, T, D), mask (N, T) -> mean of the real parts (N, D)."""
    weight = mask.to(x.dtype)
    return torch.bmm(weight[:, None], x)[:, 0] / weight.sum(1, keepdim=True)


def blanked(x: Tensor, mask: Tensor) -> Tensor:
    """x (N, T, D) with zeros where nothing is real, whatever stood there."""
    if mask.device.type == "cpu" and bool(mask.all()):  # a look costs nothing here; an accelerator would have to wait
        return x
    return x.masked_fill(~mask[..., None], 0.0)


def masked_softmax(logits: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last axis among the real entries; the others get exactly 0."""
    return logits.masked_fill(~mask, float("-inf")).softmax(-1)


def xavier(inputs: int, outputs: int, bias: bool = True) -> nn.Linear:
    """A linear layer as the SGRAF family starts it: Xavier-uniform weight, zero bias."""
    layer = nn.Linear(inputs, outputs, bias=bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer
