"""Similarity of chosen cells: scores, ranks and nearest partners, in chunks, never all cells in memory.

Letters: n and m vectors of the two sides, d their width, C cells (row, column) asked about, k partners wanted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mispair.progress import Progress

Rows = NDArray[np.int64]

REFERENCE = 8192  # items a rank is counted over; of more, this many drawn at random stand for all
_CHUNK = 1 << 22  # cells of a product held at a time
_CACHED = 1 << 21  # of them, where they are gone through several times
_SOFT = 0.35  # temperature of the soft maximum of rivals, in standard deviations of a random score
_PROBED = 256  # rows that standard deviation is taken over
_TIE = 1e-6  # scores closer than this are equal: two ways of adding up the same product differ by as much


def cell_scores(a: Tensor, b: Tensor, rows: Rows, cols: Rows) -> NDArray[np.float32]:
    """Inner products of the listed cells: a (n, d), b (m, d) -> (C,)."""
    out = np.empty(len(rows), np.float32)
    step = max(1, _CHUNK // a.shape[1])
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        out[part] = (a[_index(rows[part])] * b[_index(cols[part])]).sum(1).numpy()
    return out


class Standing(NamedTuple):
    """Where cells stand in their rows, each (C,)."""

    rank: Rows  # of the column among all columns, from 1; ties count against it
    rivals: NDArray[np.float64]  # soft maximum of the scores of the other columns, at least its median over rows


def stand_in_rows(
    a: Tensor, b: Tensor, rows: Rows, cols: Rows, scores: NDArray[np.float32], progress: Progress | None = None
) -> Standing:
    """Each cell among all columns of its row; a (n, d), b (m, d), the cells (C,) and their scores (C,).

    Beyond `REFERENCE` columns it is an estimate: that of a random sample, scaled up.
    Rivals can speak against a cell; that there are none speaks for nothing (a text that is about no image has none),
    so they are never taken for weaker than those of the median row.
    """
    sample = np.arange(len(b))
    if len(b) > REFERENCE:
        size = REFERENCE if len(b) <= 4 * REFERENCE else REFERENCE // 2  # of very many, time counts more
        sample = np.sort(np.random.default_rng(0).choice(len(b), size, replace=False))
    others = b[_index(sample)].T.contiguous()
    where = np.searchsorted(sample, cols).clip(max=len(sample) - 1)
    sampled = sample[where] == cols
    order = np.argsort(rows, kind="stable")
    distinct, first = np.unique(rows[order], return_index=True)
    ends = np.append(first[1:], len(rows))
    probe = np.unique(np.linspace(0, len(distinct) - 1, _PROBED).astype(np.int64))
    temperature = max(_SOFT * float((a[_index(distinct[probe])] @ others).std()), 1e-6)
    above = np.empty(len(rows), np.int64)
    rivals, of_row = np.empty(len(rows)), np.empty(len(distinct))
    step = max(1, _CACHED // len(sample))
    at = 0
    while at < len(distinct):
        # As many rows as the chunk holds, counting the cells that each row is asked about.
        stop = max(at + 1, int(np.searchsorted(ends, first[at] + step, "right")))
        stop = min(stop, at + step)
        cells = order[first[at] : ends[stop - 1]]
        product = a[_index(distinct[at:stop])] @ others
        place = np.searchsorted(distinct[at:stop], rows[cells])
        maximum = product.amax(1)
        total = ((product - maximum[:, None]) / temperature).exp_().sum(1).double().numpy()
        best = maximum.double().numpy()
        of_row[at:stop] = best + temperature * np.log(total)
        itself = np.where(sampled[cells], np.exp(np.minimum(scores[cells] - best[place], 0.0) / temperature), 0.0)
        rivals[cells] = best[place] + temperature * np.log(np.maximum(total[place] - itself, 1e-12))
        mine = product[_index(place)]
        own = np.flatnonzero(sampled[cells])
        mine[_index(own), _index(where[cells[own]])] = -torch.inf
        level = torch.from_numpy(scores[cells]).unsqueeze(1) - _TIE
        above[cells] = np.count_nonzero((mine >= level).numpy(), axis=1)  # twenty times faster than torch's sum
        at = stop
        if progress is not None:
            progress(int(ends[stop - 1]), len(rows))
    others_in_all = len(b) - 1
    others_in_sample = np.maximum(len(sample) - sampled, 1)
    rank = np.asarray(1 + np.rint(above * (others_in_all / others_in_sample)), np.int64)
    return Standing(rank, np.maximum(rivals, np.median(of_row)))


def best_partners(a: Tensor, b: Tensor, k: int, progress: Progress | None = None) -> tuple[Tensor, Tensor]:
    """The k best columns of every row, best first: values (n, k) and indices (n, k)."""
    k = min(k, len(b))
    values, indices = torch.empty(len(a), k), torch.empty(len(a), k, dtype=torch.long)
    step = max(1, _CHUNK // len(b))
    columns = b.T.contiguous()
    for start in range(0, len(a), step):
        part = slice(start, start + step)
        values[part], indices[part] = (a[part] @ columns).topk(k, 1)
        if progress is not None:
            progress(min(start + step, len(a)), len(a))
    return values, indices


def _index(rows: Rows) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(rows, np.int64))
