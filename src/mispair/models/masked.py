"""Masked means, norms and softmax: the arithmetic every backbone shares. Letters as in `mispair.types`."""

from __future__ import annotations

import torch
from torch import Tensor, nn

EPS = 1e-8  # added to a norm, not used as its floor, as the published models do


def l2(x: Tensor, dim: int = -1) -> Tensor:
    """x / (|x| + 1e-8) along `dim`: zero stays zero."""
    norm: Tensor = torch.linalg.vector_norm(x, dim=dim, keepdim=True)
    return x / (norm + EPS)


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
