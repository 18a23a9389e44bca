"""What images and texts look like before anything is trained: what no pair, right or wrong, had a part in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from mispair.data.features import FeatureStore
from mispair.data.latent_semantics import latent_semantics
from mispair.data.pair_data import PairData
from mispair.data.vocabulary import UNK, TokenStore
from mispair.types import Untrained

WIDEST = 256  # vectors wider than this keep so many of their principal components
_WORDS = 256  # width of texts that are words
_BLOCK = 1024
_MOST_ROWS = 20_000  # show the principal components of all


class _Principal(NamedTuple):
    """Of a vector x, (x - mean) @ basis are its principal components."""

    mean: NDArray[np.float32]  # (F,)
    basis: NDArray[np.float32]  # (F, WIDEST)


def untrained_vectors(data: PairData) -> Untrained | None:
    """One vector per image and per pair's text; None where pictures are decoded batch by batch.

    Of images and of texts that are features the mean of their parts, of texts that are words their latent semantics.
    """
    if not isinstance(data.images, FeatureStore):
        return None
    images = _means(data.images, _principal(data.images))
    if isinstance(data.texts, TokenStore):
        return Untrained(images, _of_words(data.texts)[data.table.text_rows])
    axes = _principal(data.texts)
    texts = _means(data.texts, axes)[data.table.text_rows]
    return Untrained(images, texts, None if data.joint is None else _means(data.joint, axes))


def _of_words(tokens: TokenStore) -> NDArray[np.float32]:
    """(M, D); what is no word (start, end, unknown) is left out."""
    words = tokens.flat > UNK
    offsets = np.concatenate([[0], np.cumsum(words)])[tokens.offsets]
    return np.asarray(latent_semantics(tokens.flat[words], offsets, _WORDS).numpy())


def _means(store: FeatureStore, axes: _Principal | None) -> NDArray[np.float32]:
    """(rows, at most WIDEST): the mean of the real parts of every row, along these axes where there are some."""
    starts = range(0, len(store), _BLOCK)
    blocks = (_mean_of(store, np.arange(start, min(start + _BLOCK, len(store)))) for start in starts)
    return np.concatenate([block if axes is None else (block - axes.mean) @ axes.basis for block in blocks])


def _mean_of(store: FeatureStore, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    values, mask = store.take(rows)
    weight = mask.astype(np.float32)
    return np.asarray(np.einsum("brf,br->bf", values, weight) / np.maximum(weight.sum(1, keepdims=True), 1))


def _principal(store: FeatureStore) -> _Principal | None:
    """The principal components of some rows, evenly drawn; None where vectors are narrow enough as they are."""
    if store.width <= WIDEST:
        return None
    rows = np.unique(np.linspace(0, len(store) - 1, min(len(store), _MOST_ROWS)).astype(np.int64))
    total, moments = np.zeros(store.width), np.zeros((store.width, store.width))
    for start in range(0, len(rows), _BLOCK):
        part = _mean_of(store, rows[start : start + _BLOCK]).astype(np.float64)
        total += part.sum(0)
        moments += part.T @ part
    mean = total / len(rows)
    _, basis = torch.linalg.eigh(torch.from_numpy(moments / len(rows) - np.outer(mean, mean)))
    return _Principal(mean.astype(np.float32), basis[:, -WIDEST:].numpy().astype(np.float32))
