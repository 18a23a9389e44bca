"""What images and texts look like before anything is trained: what no pair, right or wrong, had a part in."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from mispair.data.features import FeatureStore
from mispair.data.latent_semantics import latent_semantics
from mispair.data.pair_data import PairData
from mispair.data.vocabulary import UNK, TokenStore
from mispair.types import Untrained

WIDEST = 512  # vectors wider than this are projected at random
_WORDS = 256  # width of texts that are words
_BLOCK = 1024


def untrained_vectors(data: PairData) -> Untrained | None:
    """One vector per image and per pair's text; None where pictures are decoded batch by batch.

    Of images and of texts that are features the mean of their parts, of texts that are words their latent semantics.
    """
    if not isinstance(data.images, FeatureStore):
        return None
    texts = _of_words(data.texts) if isinstance(data.texts, TokenStore) else _means(data.texts)
    return Untrained(_means(data.images), texts[data.table.text_rows])


def _of_words(tokens: TokenStore) -> NDArray[np.float32]:
    """(M, D); what is no word (start, end, unknown) is left out."""
    words = tokens.flat > UNK
    offsets = np.concatenate([[0], np.cumsum(words)])[tokens.offsets]
    return np.asarray(latent_semantics(tokens.flat[words], offsets, _WORDS).numpy())


def _means(store: FeatureStore) -> NDArray[np.float32]:
    """(rows, at most WIDEST): the mean of the real parts of every row."""
    blocks = []
    for start in range(0, len(store), _BLOCK):
        values, mask = store.take(np.arange(start, min(start + _BLOCK, len(store))))
        weight = mask.astype(np.float32)
        means = np.einsum("brf,br->bf", values, weight) / np.maximum(weight.sum(1, keepdims=True), 1)
        blocks.append(_narrowed(means))
    return np.concatenate(blocks)


def _narrowed(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The same random projection for all vectors of a width."""
    width = vectors.shape[1]
    if width <= WIDEST:
        return vectors
    drawn = torch.randn(width, WIDEST, generator=torch.Generator().manual_seed(width)).numpy()
    return np.asarray(vectors @ (drawn / np.float32(WIDEST**0.5)))
