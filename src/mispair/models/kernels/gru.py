"""A one-way GRU over sequences of many lengths, for a processor: no padding, and products as large as they can be.

PyTorch's own loop leaves a graph of small steps behind, whose backward fills a zero gradient of the whole sequence per
step and adds one weight gradient per step. Here the steps share buffers; only what must wait for the step before it
stays in the loop, and each weight gets its gradient in one product. Same equations, same parameters as `nn.GRU`.

The slow version that proves it: `encode_words` in tests/model_oracles.py, by `nn.GRU` itself, one text at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from mispair.models.kernels.autograd import differentiable


def run_packed(gru: nn.GRU, x: Tensor, mask: Tensor, backwards: bool = False) -> Tensor:
    """Hidden states (N, L, D) of x (N, L, F) with real steps first in mask (N, L); zeros beyond them."""
    weights = (gru.weight_ih_l0, gru.weight_hh_l0, gru.bias_ih_l0, gru.bias_hh_l0)
    return differentiable(_GRU, x, _pack(mask, backwards), *weights)


@dataclass(frozen=True, slots=True)
class _Packing:
    """Real steps in the order of time, longest sequence first, so that each moment is one stretch of rows."""

    places: Tensor  # (T,) where each row is in the flattened (N * L)
    moments: list[tuple[int, int, int]]  # in reading order: first row, rows, and rows that go on from the moment before


def _pack(mask: Tensor, backwards: bool) -> _Packing:
    lengths = mask.sum(1)
    order = torch.argsort(lengths, descending=True, stable=True)
    time, sequence = mask[order].T.nonzero(as_tuple=True)
    counts = torch.bincount(time).tolist()
    starts = [sum(counts[:at]) for at in range(len(counts))]
    moments, before = [], 0
    for start, count in (
        reversed([*zip(starts, counts, strict=True)]) if backwards else zip(starts, counts, strict=True)
    ):
        moments.append((start, count, min(before, count)))
        before = count
    return _Packing(order[sequence] * mask.shape[1] + time, moments)


class _GRU(torch.autograd.Function):
    """r, z = sigmoid(..), n = tanh(W x + r * m) with m = U h + b, and h' = n + z (h - n)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, packing: _Packing, w_x: Tensor, w_h: Tensor, b_x: Tensor, b_h: Tensor) -> Tensor:
        rows = x.flatten(0, 1)[packing.places]
        size = w_h.shape[1]
        gates = torch.addmm(b_x, rows, w_x.T)
        gates[:, : 2 * size] += b_h[: 2 * size]
        inner = b_h[2 * size :].expand(len(rows), size).clone()  # m
        before, hidden = gates.new_zeros(len(rows), size), gates.new_empty(len(rows), size)
        last = 0
        for start, count, shared in packing.moments:
            now = slice(start, start + count)
            gate, m, h = gates[now], inner[now], before[now]
            if shared:
                h[:shared] = hidden[last : last + shared]
                seen = h[:shared] @ w_h.T
                gate[:shared, : 2 * size] += seen[:, : 2 * size]
                m[:shared] += seen[:, 2 * size :]
            gate[:, : 2 * size].sigmoid_()
            new = gate[:, 2 * size :].addcmul_(gate[:, :size], m).tanh_()
            torch.lerp(new, h, gate[:, size : 2 * size], out=hidden[now])
            last = start
        ctx.packing, ctx.shape = packing, x.shape
        ctx.save_for_backward(rows, gates, inner, before, w_x, w_h)
        return _unpack(hidden, packing, x.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows, gates, inner, before, w_x, w_h = ctx.saved_tensors
        packing, size = ctx.packing, w_h.shape[1]
        arriving = grad.flatten(0, 1)[packing.places]  # becomes dL/dh' of every row
        r, z, n = gates.split(size, 1)
        # Every gate's gradient is dL/dh' times something the forward has fixed, so those factors come first, at once.
        to_new = (1 - z) * (1 - n * n)
        factors = gates.new_empty(len(rows), 3, size)
        torch.mul(to_new * inner, r * (1 - r), out=factors[:, 0])
        torch.mul(before - n, z * (1 - z), out=factors[:, 1])
        torch.mul(to_new, r, out=factors[:, 2])
        recurrent = torch.empty_like(factors)
        moments = packing.moments
        for at in range(len(moments) - 1, -1, -1):
            start, count, shared = moments[at]
            now = slice(start, start + count)
            dh = arriving[now]
            torch.mul(dh[:, None], factors[now], out=recurrent[now])
            if shared:
                first, carried = moments[at - 1][0], slice(start, start + shared)
                arriving[first : first + shared] += torch.addmm(
                    dh[:shared] * z[carried], recurrent[carried].flatten(1), w_h
                )
        recurrent_, outer = recurrent.flatten(1), recurrent.flatten(1).clone()
        torch.mul(arriving, to_new, out=outer[:, 2 * size :])
        d_x = _unpack(outer @ w_x, packing, ctx.shape) if ctx.needs_input_grad[0] else None
        return d_x, None, outer.T @ rows, recurrent_.T @ before, outer.sum(0), recurrent_.sum(0)


def _unpack(rows: Tensor, packing: _Packing, shape: torch.Size) -> Tensor:
    out = rows.new_zeros(shape[0] * shape[1], rows.shape[1])
    out[packing.places] = rows
    return out.view(shape[0], shape[1], -1)
