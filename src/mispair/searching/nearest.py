"""Exact nearest neighbours over a memory map: chunk by chunk, the pages given back as it goes.

Letters: N vectors, D width, q queries, k answers.
"""

from __future__ import annotations

import mmap
import os
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float16]
_CHUNK = 65_536
_FEW = 8_192
_AT_ONCE = threading.BoundedSemaphore(os.cpu_count() or 1)  # more would only wait for each other, each with a copy
_LARGE = 256_000_000  # bytes above which a map's pages are given back after use


def exact_nearest(
    vectors: Vectors, queries: NDArray[np.float32], k: int, only: NDArray[np.bool_] | None = None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Scores (q, k) and rows (q, k) of the largest inner products, chunk by chunk; ties go to the earlier row.

    Rows that `only` (N,) leaves out are -1, behind the others.
    """
    best = np.full((len(queries), 0), -np.inf, np.float32)
    rows = np.zeros((len(queries), 0), np.int64)
    for start in range(0, len(vectors), _CHUNK):
        block = _products(queries, vectors[start : start + _CHUNK])
        if only is not None:
            block[:, ~only[start : start + _CHUNK]] = -np.inf
        count = min(k, block.shape[1])
        top = np.argpartition(-block, count - 1, axis=1)[:, :count] if count < block.shape[1] else None
        some = block if top is None else np.take_along_axis(block, top, 1)
        where = start + (np.broadcast_to(np.arange(block.shape[1]), block.shape) if top is None else top)
        best, rows = np.concatenate([best, some], 1), np.concatenate([rows, where], 1)
        order = np.lexsort((rows, -best), axis=1)[:, :k]
        best, rows = np.take_along_axis(best, order, 1), np.take_along_axis(rows, order, 1)
        if vectors.nbytes > _LARGE:
            release_pages(vectors)
    return best, rows if only is None else np.where(np.isfinite(best), rows, -1)


def _products(queries: NDArray[np.float32], vectors: Vectors) -> NDArray[np.float32]:
    """(q, n) inner products; vectors are read in single precision a few at a time.

    Many ask a server at once: so many compute as there are cores, each with a few megabytes, not a copy of the chunk.
    """
    out = np.empty((len(queries), len(vectors)), np.float32)
    with _AT_ONCE:
        few = np.empty((min(_FEW, len(vectors)), vectors.shape[1]), np.float32)
        for start in range(0, len(vectors), _FEW):
            part = vectors[start : start + _FEW]
            few[: len(part)] = part
            np.matmul(queries, few[: len(part)].T, out=out[:, start : start + len(part)])
    return out


def release_pages(vectors: NDArray[Any]) -> None:
    """Give the pages of a memory map back: a pass over all vectors must not fill the memory with them."""
    pages = getattr(vectors, "_mmap", None)
    if isinstance(pages, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        pages.madvise(mmap.MADV_DONTNEED)
