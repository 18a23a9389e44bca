"""Texts as vectors without any training: latent semantic analysis of the words they share.

Letters: M texts, V kinds of words that say something, D width.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_LEAST = 2  # texts a word occurs in before it says anything
_MOST = 0.3  # share of the texts beyond which it says nothing
_ROUNDS = 4  # of subspace iteration
_SPARE = 16  # columns beyond those that are kept, which bring these nearer to exact


def latent_semantics(words: NDArray[np.integer], offsets: NDArray[np.int64], width: int) -> Tensor:
    """Word ids of M texts in one flat array, text k from offsets[k] on -> (M, D) float32, D at most `width`.

    The largest singular directions of the matrix of texts by words, where a word counts once in a text and weighs
    log(M / texts it occurs in) (Deerwester et al. 1990), by randomised subspace iteration (Halko et al. 2011). A text
    without a word that says something is zeros. Equal input gives equal output.
    """
    matrix = _weighed(words, offsets)
    width = min(width, *matrix.shape)
    if width == 0:
        return torch.zeros(len(offsets) - 1, 1)
    turned = matrix.t().coalesce()
    columns = min(width + _SPARE, *matrix.shape)
    drawn = torch.randn(matrix.shape[1], columns, generator=torch.Generator().manual_seed(0))
    basis = torch.linalg.qr(torch.sparse.mm(matrix, drawn)).Q
    for _ in range(_ROUNDS):
        basis = torch.linalg.qr(torch.sparse.mm(turned, basis)).Q
        basis = torch.linalg.qr(torch.sparse.mm(matrix, basis)).Q
    left, values, _ = torch.linalg.svd(torch.sparse.mm(turned, basis).T, full_matrices=False)
    vectors: Tensor = basis @ (left * values)[:, :width]
    return vectors


def _weighed(words: NDArray[np.integer], offsets: NDArray[np.int64]) -> Tensor:
    """The matrix of texts by words, (M, V), sparse."""
    texts = len(offsets) - 1
    kinds = int(words.max(initial=0)) + 1
    text = np.repeat(np.arange(texts), np.diff(offsets))
    cells = np.unique(text * kinds + words)  # a word counts once in a text
    row, word = cells // kinds, cells % kinds
    frequency = np.bincount(word, minlength=kinds)
    telling = (frequency >= _LEAST) & (frequency <= max(_MOST * texts, _LEAST))
    row, word = row[telling[word]], word[telling[word]]
    column = np.cumsum(telling)[word] - 1
    weight = np.log(texts / frequency[word]).astype(np.float32)
    return torch.sparse_coo_tensor(
        torch.from_numpy(np.stack([row, column])),
        torch.from_numpy(weight),
        (texts, int(telling.sum())),
        is_coalesced=True,  # cells are unique and ascend by row, then by word
        check_invariants=True,
    )
