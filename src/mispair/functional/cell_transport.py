"""Partial entropic transport where few cells may carry mass: as `partial_transport`, and only those are kept.

Of 512 images with 32 candidates each a thirtieth of the cells is allowed. The rounds are those of `sinkhorn.extended`;
a product with the plan is a sum over the cells of each row, or of each column.

Letters: C cells, n images (rows), m texts (columns), p (n,) and q (m,) their masses, ρ the mass to move, λ the entropy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mispair.errors import InputError
from mispair.functional.sinkhorn import TINY, extended

_Ints = NDArray[np.int64]
_Floats = NDArray[np.float64]


def transport_cells(
    rows: _Ints, cols: _Ints, cost: _Floats, mass: float, entropy: float, p: _Floats, q: _Floats, *,
    tol: float = 1e-6, max_iter: int = 2000,
) -> _Floats:  # fmt: skip
    """The mass on each listed cell, (C,); every other cell is forbidden (L2RM Eq. 7-9, Algorithm 2).

    Args:
        rows, cols: (C,) of the allowed cells, each once; every row and every column has one.
        cost: (C,), finite.
        mass: ρ, at most the smaller sum of p and q counts.
        entropy: λ > 0.
        p, q: (n,) and (m,).
        tol, max_iter: as `partial_transport` has them.
    """
    if not len(rows) == len(cols) == len(cost):
        raise InputError(f"cells have a row, a column and a cost each, got {len(rows)}, {len(cols)} and {len(cost)}")
    with torch.inference_mode():
        kernel = _SparseKernel.of(rows, cols, torch.from_numpy(cost) / -entropy, len(p), len(q))
        masses = torch.from_numpy(p), torch.from_numpy(q)
        rho = torch.minimum(masses[0].sum(), masses[1].sum()).clamp(max=mass)
        f, g, _, _ = extended(kernel, rho, *masses, tol, max_iter)
        plan = kernel.plan(f, g).numpy()
    for index, most in ((rows, p), (cols, q)):  # a plan never carries more than it is given
        held = np.bincount(index, plan, len(most))
        plan = plan * np.minimum(most / np.maximum(held, TINY), 1)[index]
    return plan


@dataclass(frozen=True, eq=False)
class _TransportSide:
    """The cells in the order of their rows (or columns): each row's lie together, from `starts` on."""

    order: _Ints  # (C,)
    starts: _Ints  # (n,)
    own: _Ints  # (C,) row of each
    other: _Ints  # (C,) column of each

    @classmethod
    def of(cls, own: _Ints, other: _Ints, count: int) -> _TransportSide:
        order = np.argsort(own, kind="stable")
        sizes = np.bincount(own, minlength=count)
        if len(sizes) != count or not sizes.all():
            raise InputError("every row and every column needs a cell that may carry mass, and none lies beyond them")
        return cls(order, np.cumsum(sizes) - sizes, own[order], other[order])

    def log_sum(self, logs: _Floats) -> Tensor:
        """(n,): the logarithm of the sum of exp over each row's cells, `logs` (C,) in this order."""
        most = np.maximum.reduceat(logs, self.starts)
        return torch.from_numpy(most + np.log(np.add.reduceat(np.exp(logs - most[self.own]), self.starts)))

    def product(self, plan: _Floats) -> Callable[[Tensor], Tensor]:
        """With a vector over the columns, `plan` (C,) as listed."""
        mine = plan[self.order]
        return lambda v: torch.from_numpy(np.add.reduceat(mine * v.numpy().take(self.other), self.starts))


@dataclass(frozen=True, eq=False)
class _SparseKernel:
    """A kernel with the listed cells alone; see `sinkhorn.Kernel`."""

    log_kernel: Tensor  # (C,)
    rows: Tensor
    cols: Tensor
    by_row: _TransportSide
    by_col: _TransportSide

    @classmethod
    def of(cls, rows: _Ints, cols: _Ints, log_kernel: Tensor, n: int, m: int) -> _SparseKernel:
        sides = _TransportSide.of(rows, cols, n), _TransportSide.of(cols, rows, m)
        return cls(log_kernel, torch.from_numpy(rows), torch.from_numpy(cols), *sides)

    def plan(self, f: Tensor, g: Tensor) -> Tensor:
        """(C,)"""
        return torch.exp(self.log_kernel + f.take(self.rows) + g.take(self.cols))

    def reach_of_rows(self) -> Tensor:
        return self.by_row.log_sum(self.log_kernel.numpy()[self.by_row.order])

    def reach_of_cols(self, f: Tensor) -> Tensor:
        return self.by_col.log_sum((self.log_kernel + f.take(self.rows)).numpy()[self.by_col.order])

    def absorb(self, f: Tensor, g: Tensor) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]:
        plan = self.plan(f, g).numpy()
        return self.by_row.product(plan), self.by_col.product(plan)
