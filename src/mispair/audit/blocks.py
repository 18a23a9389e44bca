"""Partial transport between many images and many texts: in one block where that fits, else block by block.

Letters: n images, m texts, C cells (row, column) that may carry mass.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mispair.audit.products import Progress, Rows, best_partners
from mispair.functional.transport import partial_transport

Floats = NDArray[np.float64]

MANY = 4096  # images from which thoroughness gives way to time
_WHOLE = 1 << 23  # cells of one block, 64 MB
_ROWS, _COLUMNS = 256, 1024  # images of a block among many; texts, for each text that an image has
_ENTROPY = 0.08  # the scores are in standard deviations of a random cell; measured in docs/audit.md
_MASS = 0.9  # share of what could move at most: the least likely stay where they are
_ROUNDS = 200, 100  # of the only block, of a block among many


def transport(
    rows: Rows,
    cols: Rows,
    score: Floats,
    image_mass: Floats,
    text_mass: Floats,
    images: Tensor,
    progress: Progress,
) -> Floats:
    """Mass on each cell, (C,): a block is images (n, d) that lie together, with all their candidates.

    rows, cols and score are (C,), the masses (n,) and (m,). What a block takes of a text the later ones do not have.
    """
    left = text_mass.copy()
    weight = np.zeros(len(rows))
    block_of = np.zeros(len(images), np.int64) if len(images) * len(left) <= _WHOLE else _blocks(images)
    count = int(block_of.max()) + 1
    most = _COLUMNS * -(-len(left) // len(images)) if count > 1 else len(left)
    by_block = np.argsort(block_of[rows], kind="stable")
    bounds = np.searchsorted(block_of[rows][by_block], np.arange(count + 1))
    for block in range(count):
        cells = _widest(by_block[bounds[block] : bounds[block + 1]], cols, score, most)
        if len(cells):
            here, r = np.unique(rows[cells], return_inverse=True)
            there, c = np.unique(cols[cells], return_inverse=True)
            plan = _solve(r, c, score[cells], image_mass[here], left[there], _ROUNDS[count > 1])
            weight[cells] = plan[r, c]
            left[there] -= plan.sum(0)
        progress(block + 1, count)
    return weight


def _solve(r: Rows, c: Rows, score: Floats, image_mass: Floats, text_mass: Floats, rounds: int) -> Floats:
    where = torch.from_numpy(r), torch.from_numpy(c)
    cost = torch.zeros(len(image_mass), len(text_mass), dtype=torch.float64)
    cost[where] = torch.from_numpy(score.max() - score)
    forbidden = torch.ones(cost.shape, dtype=torch.bool)
    forbidden[where] = False
    p, q = torch.from_numpy(image_mass), torch.from_numpy(np.maximum(text_mass, 1e-9))
    mass = _MASS * min(float(p.sum()), float(q.sum()))
    plan: Floats = partial_transport(
        cost, mass, _ENTROPY, forbidden, p, q, tol=1e-3, max_iter=rounds, validate=False
    ).plan.numpy()
    return plan


def _blocks(vectors: Tensor) -> Rows:
    """The block of each image: groups of `_ROWS` that lie near the same centre."""
    block_of = np.empty(len(vectors), np.int64)
    drawn = np.random.default_rng(0).permutation(len(vectors))[: max(1, len(vectors) // _ROWS)]
    centres = vectors[torch.from_numpy(drawn)]
    for _ in range(3):  # a few rounds of k-means; it only has to bring together what may compete
        nearest = best_partners(vectors, centres, 1)[1][:, 0]
        total = torch.zeros_like(centres).index_add_(0, nearest, vectors)
        centres = torch.nn.functional.normalize(total, dim=1)
    block_of[np.argsort(nearest.numpy(), kind="stable")] = np.arange(len(vectors)) // _ROWS
    return block_of


def _widest(cells: Rows, cols: Rows, score: Floats, most: int) -> Rows:
    """The cells of the columns worth keeping, when a block has too many: those with the best scores."""
    there, c = np.unique(cols[cells], return_inverse=True)
    if len(there) <= most:
        return cells
    best = np.full(len(there), -np.inf)
    np.maximum.at(best, c, score[cells])
    kept = np.zeros(len(there), bool)
    kept[np.argsort(-best)[:most]] = True
    return np.asarray(cells[kept[c]])
