"""Training on a shortlist: which cells of a grid the full model scores, and what stands in the others.

The candidates of a row and of a column are those its stand-in ranks highest, and a few that nobody chose, so that the
stand-in is also told what it never names. The rest are estimated: the stand-in's cosine on the scale of the logits.

Letters: n images, m texts, c cells.
"""

from __future__ import annotations

import torch
from torch import Tensor

UNCHOSEN = 2  # cells of each row beside the candidates: in a batch of given pairs the first is the pair itself
WORTH = 0.25  # a shortlist with more than this share of the cells is no cheaper than the grid


def worth_it(n: int, m: int, count: int) -> bool:
    """Whether scoring `count` candidates per query is cheaper than the grid."""
    return count * (n + m) + UNCHOSEN * n <= WORTH * n * m


def candidate_cells(cheap: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Rows and columns (c,) of the cells to score, from the stand-in's cosines (n, m).

    On an accelerator a cell may come twice: to drop the second the host would have to wait.
    """
    n, m = cheap.shape
    every_row, every_col = torch.arange(n, device=cheap.device), torch.arange(m, device=cheap.device)
    best_cols = cheap.topk(min(count, m), 1).indices
    best_rows = cheap.topk(min(count, n), 0).indices
    rows = [every_row[:, None].expand_as(best_cols).flatten(), best_rows.flatten()]
    cols = [best_cols.flatten(), every_col.expand_as(best_rows).flatten()]
    for shift in range(UNCHOSEN):  # the order of a batch is drawn: a fixed step in it meets anybody
        rows.append(every_row)
        cols.append((every_row + shift * (m // UNCHOSEN)) % m)
    cells = torch.cat(rows) * m + torch.cat(cols)
    if cells.device.type == "cpu":
        cells = torch.unique(cells)
    return cells // m, cells % m


def completed(cheap: Tensor, rows: Tensor, cols: Tensor, logits: Tensor) -> tuple[Tensor, Tensor]:
    """All logits (n, m) from those of some cells (c,), and which cells were scored (n, m) bool.

    An unscored cell has the level of its row and of its column, and beyond that what the stand-in says, on the scale on
    which it fits the scored cells best. The levels have gradients: a loss that raises a pair lowers the rest of its row
    and of its column, as in the whole grid; otherwise it would be lowered by raising everything.
    """
    known, given = cheap[rows, cols], logits.to(cheap.dtype)
    usual, expected = _levels(given, rows, cols, cheap.shape), _levels(known, rows, cols, cheap.shape)
    apart, explained = (given - usual[rows, cols]).detach(), known - expected[rows, cols]
    slope = ((explained * apart).sum() / explained.square().sum().clamp_min(1e-12)).clamp_min(0)
    estimate = usual + slope * (cheap - expected)
    cells = rows * cheap.shape[1] + cols
    times = torch.zeros_like(cheap).flatten().index_add(0, cells, torch.ones_like(given))
    total = torch.zeros_like(cheap).flatten().index_add(0, cells, given)
    scored = times > 0
    whole = torch.where(scored, total / times.clamp_min(1), estimate.flatten())
    return whole.view_as(cheap), scored.view_as(cheap)


def _levels(values: Tensor, rows: Tensor, cols: Tensor, shape: torch.Size) -> Tensor:
    """The mean of each row's listed cells plus that of each column's, less that of all: (c,) -> (n, m)."""
    means = []
    for index, count in ((rows, shape[0]), (cols, shape[1])):
        total = values.new_zeros(count).index_add(0, index, values)
        means.append(total / values.new_zeros(count).index_add(0, index, torch.ones_like(values)))
    return means[0][:, None] + means[1] - values.mean()
