"""Partial transport between many images and many texts: in one block where that fits, else block by block.

Letters: n images, m texts, C cells (row, column) that may carry mass.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mispair.auditing.similarity import Rows, best_partners
from mispair.functional.cell_transport import transport_cells
from mispair.progress import Progress

Floats = NDArray[np.float64]

MANY = 4096  # images from which thoroughness gives way to time
_WHOLE = 1 << 24  # cells of one block, 128 MB
ROWS, COLUMNS = 512, 1024  # images of a block among many; texts, for each text that an image has
_ENTROPY = 0.08  # the scores are in standard deviations of a random cell; measured in docs/audit.md
DIVISION = 0.2  # of the same: how much worse a text fits where it leaves little of its mass
_MASS = 0.9  # share of what could move at most: the least likely stay where they are
ROUNDS = 200, 100  # of the only block, of a block among many


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

    rows, cols and score are (C,), the masses (n,) and (m,). A text divides its mass among the blocks by how it fits
    their images, so that no block takes what belongs to another.
    """
    weight = np.zeros(len(rows))
    count = 1 if len(images) * len(text_mass) <= _WHOLE else max(1, len(images) // ROWS)
    block_of = lie_together(images, count)
    most = COLUMNS * -(-len(text_mass) // len(images)) if count > 1 else len(text_mass)
    allotted = _allotted(block_of[rows], cols, score, text_mass)
    by_block = np.argsort(block_of[rows], kind="stable")
    bounds = np.searchsorted(block_of[rows][by_block], np.arange(count + 1))
    for block in range(count):
        cells = by_block[bounds[block] : bounds[block + 1]]
        cells = heaviest(cells, cols, allotted, most)
        if len(cells):
            here, r = np.unique(rows[cells], return_inverse=True)
            _, first, c = np.unique(cols[cells], return_index=True, return_inverse=True)
            masses = image_mass[here], allotted[cells[first]]
            weight[cells] = solve_block(r, c, score[cells], *masses, ROUNDS[count > 1])
        progress(block + 1, count)
    return weight


def _allotted(block: Rows, cols: Rows, score: Floats, text_mass: Floats) -> Floats:
    """(C,): the mass that the text of each cell has in the block of that cell."""
    best = np.full(len(text_mass), -np.inf)
    np.maximum.at(best, cols, score)
    fit = np.exp((score - best[cols]) / DIVISION)
    _, place = np.unique(block * len(text_mass) + cols, return_inverse=True)
    return np.asarray(text_mass[cols] * np.bincount(place, fit)[place] / np.bincount(cols, fit, len(text_mass))[cols])


def solve_block(r: Rows, c: Rows, score: Floats, image_mass: Floats, text_mass: Floats, rounds: int) -> Floats:
    """Mass on each cell of one block, (C',): its cells r, c and score (C',), and the masses of its rows and columns."""
    q = np.maximum(text_mass, 1e-9)
    mass = _MASS * min(float(image_mass.sum()), float(q.sum()))
    return transport_cells(r, c, score.max() - score, mass, _ENTROPY, image_mass, q, tol=1e-3, max_iter=rounds)


def lie_together(vectors: Tensor, count: int) -> Rows:
    """The block of each image, equally many in each: those that lie near the same of `count` centres are together."""
    block_of = np.zeros(len(vectors), np.int64)
    if count == 1:
        return block_of
    centres = vectors[torch.from_numpy(np.random.default_rng(0).permutation(len(vectors))[:count])]
    for _ in range(3):  # a few rounds of k-means; it only has to bring together what may compete
        nearest = best_partners(vectors, centres, 1)[1][:, 0]
        total = torch.zeros_like(centres).index_add_(0, nearest, vectors)
        centres = torch.nn.functional.normalize(total, dim=1)
    block_of[np.argsort(nearest.numpy(), kind="stable")] = np.arange(len(vectors)) * count // len(vectors)
    return block_of


def heaviest(cells: Rows, cols: Rows, allotted: Floats, most: int) -> Rows:
    """The cells of the `most` texts that have the most mass in the block."""
    there, first, c = np.unique(cols[cells], return_index=True, return_inverse=True)
    if len(there) <= most:
        return cells
    kept = np.zeros(len(there), bool)
    kept[np.argsort(-allotted[cells[first]], kind="stable")[:most]] = True
    return np.asarray(cells[kept[c]])
