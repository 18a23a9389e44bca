"""Pair-level scores without a stored graph: the backward runs again only what carries gradient.

A block function maps image-side tensors (n, ...) and text-side tensors (b, k, ...) to logits (n, k); b is 1 for a
grid and n (with k = 1) for a list of pairs. It must be deterministic. Its graph exists for one block at a time.

The slow version that proves it: `imram_scores` in tests/model_oracles.py, whose graph is stored as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mispair.models.kernels.autograd import differentiable
from mispair.models.kernels.similarity_vectors import live_cells, pieces

BlockFunction = Callable[[Sequence[Tensor], Sequence[Tensor], Sequence[Tensor]], Tensor]


def score(
    block: BlockFunction, images: Sequence[Tensor], texts: Sequence[Tensor], weights: Sequence[Tensor], step: int
) -> Tensor:
    """Logits (n, k) of a block function, `step` images (or pairs) at a time; no graph is kept in between."""
    counts = (len(images), len(texts))
    if not torch.is_grad_enabled():
        return _forward(block, images, texts, weights, step)
    return differentiable(_Recomputed, block, step, counts, *images, *texts, *weights)


def _forward(
    block: BlockFunction, images: Sequence[Tensor], texts: Sequence[Tensor], weights: Sequence[Tensor], step: int
) -> Tensor:
    return torch.cat([block(*_part(images, texts, at, step), weights) for at in range(0, len(images[0]), step)])


def _part(images: Sequence[Tensor], texts: Sequence[Tensor], at: int, step: int) -> tuple[list[Tensor], list[Tensor]]:
    """The next images with their texts: the shared ones, or their own."""
    own = [t if t.shape[0] == 1 else t[at : at + step] for t in texts]
    return [x[at : at + step] for x in images], own


class _Recomputed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, block: BlockFunction, step: int, counts: tuple[int, int], *tensors: Tensor) -> Tensor:
        ctx.block, ctx.step, ctx.counts = block, step, counts
        ctx.autocast = _autocast(tensors[0].device.type)
        ctx.save_for_backward(*tensors)
        return _forward(block, *_sides(tensors, counts), step)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        tensors = ctx.saved_tensors
        images, texts, weights = _sides(tensors, ctx.counts)
        sums = [torch.zeros_like(t) if t.is_floating_point() else None for t in tensors]
        shared = texts[0].shape[0] == 1
        cells = live_cells(grad) if shared else None
        kind, dtype, enabled = ctx.autocast
        with torch.autocast(kind, dtype=dtype, enabled=enabled):
            if cells is None:
                for at in range(0, len(grad), ctx.step):
                    part = slice(at, at + ctx.step)
                    gradients = _gradients(ctx.block, *_part(images, texts, at, ctx.step), weights, grad[part])
                    places = [part] * len(images) + [... if shared else part] * len(texts)
                    for total, new, place in zip(sums, gradients, places + [...] * len(weights), strict=True):
                        if total is not None and new is not None:
                            total[place] += new
            else:
                for rows, cols in zip(*(pieces(c, ctx.step) for c in cells), strict=True):
                    own = [x[rows] for x in images], [t[0, cols, None] for t in texts]
                    gradients = _gradients(ctx.block, *own, weights, grad[rows, cols, None])
                    _scatter(sums, gradients, ctx.counts, rows, cols)
        return None, None, None, *sums


def _gradients(
    block: BlockFunction, images: Sequence[Tensor], texts: Sequence[Tensor], weights: Sequence[Tensor], grad: Tensor
) -> list[Tensor | None]:
    """Run one block with a graph and come back with the gradient of each floating-point input."""
    leaves = [t.detach().requires_grad_(t.is_floating_point()) for t in (*images, *texts, *weights)]
    wanted = [t for t in leaves if t.requires_grad]
    with torch.enable_grad():
        out = block(*_sides(leaves, (len(images), len(texts))))
    gradients = iter(torch.autograd.grad(out, wanted, grad, allow_unused=True))
    return [next(gradients) if t.requires_grad else None for t in leaves]


def _scatter(
    sums: Sequence[Tensor | None],
    gradients: Sequence[Tensor | None],
    counts: tuple[int, int],
    rows: Tensor,
    cols: Tensor,
) -> None:
    for at, (total, new) in enumerate(zip(sums, gradients, strict=True)):
        if total is None or new is None:
            continue
        if at < counts[0]:
            total.index_add_(0, rows, new)
        elif at < sum(counts):
            total[0].index_add_(0, cols, new[:, 0])
        else:
            total += new


def _sides(
    tensors: Sequence[Tensor], counts: tuple[int, int]
) -> tuple[Sequence[Tensor], Sequence[Tensor], Sequence[Tensor]]:
    first, second = counts
    return tensors[:first], tensors[first : first + second], tensors[first + second :]


def _autocast(kind: str) -> tuple[str, torch.dtype, bool]:
    return kind, torch.get_autocast_dtype(kind), torch.is_autocast_enabled(kind)
