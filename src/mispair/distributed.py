"""Processes of `torch.distributed` that share one computation: rows put together, columns of a grid dealt out.

Everything here has gradients that find their way back. They follow one rule: all processes compute the same loss, so
what a process computes alone gets `world` times its part of the gradient there and nothing elsewhere, what all compute
alike gets the whole gradient from each, and averaging parameters' gradients over processes is right for both.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable

_sharing: ContextVar[bool] = ContextVar("sharing", default=False)


@contextmanager
def sharing(on: bool = True) -> Iterator[None]:
    """Inside, costly grids are computed together: every process must ask for the same ones in the same order."""
    token = _sharing.set(on)
    try:
        yield
    finally:
        _sharing.reset(token)


def gather_rows(local: Tensor) -> Tensor:
    """The shares of all processes in order of rank, (n, ...) -> (world · n, ...); all have the same shape.

    The backward pass adds what every process asks of a share.
    """
    rows: Tensor = _GatherRows.apply(local)  # type: ignore[no-untyped-call]
    return rows


@dataclass(frozen=True, slots=True)
class SharedColumns:
    """The columns of a grid that this process computes, and the way to all of them."""

    mine: Tensor  # (c,) their places in the grid; every process has as many
    _place: Tensor  # (m,) where each column of the grid stands among those of all processes

    def whole(self, part: Tensor, dim: int = 0) -> Tensor:
        """What all processes computed of their columns, in the order of the grid: c becomes m along `dim`."""
        rows = gather_rows(part.movedim(dim, 0).contiguous())
        return rows.index_select(0, self._place).movedim(0, dim)


def share_columns(lengths: Tensor) -> SharedColumns | None:
    """Deal m columns of a grid, (m,) how much work each is, among the processes; None where each computes all.

    Neighbours in length go to different processes, so that all have about the same work.
    """
    world = dist.get_world_size() if _sharing.get() and dist.is_initialized() else 1
    count = len(lengths)
    if count < world or world == 1:
        return None
    order = lengths.argsort(stable=True)
    share = -(-count // world)
    number = torch.arange(share * world, device=order.device)
    mine = order[number[dist.get_rank() :: world] % count]  # where they do not divide, some are computed twice
    place = torch.empty_like(order)
    place[order] = (number % world * share + number // world)[:count]
    return SharedColumns(mine, place)


class _GatherRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, local: Tensor) -> Tensor:
        ctx.rows = local.shape[0]
        parts = [torch.empty_like(local) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, local)
        return torch.cat(parts)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        gradient = gradient.clone(memory_format=torch.contiguous_format)  # what comes in may be shared
        dist.all_reduce(gradient)
        start = dist.get_rank() * ctx.rows
        return gradient[start : start + ctx.rows]
