"""Inverted files (faiss): vectors grouped around centres, so that a query looks at the nearest groups only.

Letters: N vectors, D width, q queries, k answers.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mispair.errors import InputError
from mispair.searching.nearest import exact_nearest, release_pages

_TRAIN_PER_CENTRE = 48
_BLOCK = 65_536
_MOST_PROBES = 256


def require_faiss() -> Any:
    """The faiss module, or a sentence how to get it."""
    try:
        import faiss
    except ImportError:
        raise InputError(
            "an index of 200,000 pairs or more needs faiss; install it with: pip install faiss-cpu"
        ) from None
    return faiss


def centres_for(count: int) -> int:
    """How many groups for `count` vectors: about twice the root, a power of two."""
    return int(2 ** np.clip(np.round(np.log2(2 * np.sqrt(count))), 4, 15))


def build_inverted(
    vectors: NDArray[Any], path: Path, progress: Callable[[int, int], None] | None = None, recall: float = 0.97
) -> int:
    """Write the inverted file of (N, D) vectors, read block by block from their memory map; the probes it will use.

    Vectors are kept as float16. The number of groups a query looks at is raised until a sample of the vectors' own
    neighbours is found with `recall`, and saved with the index.
    """
    faiss = require_faiss()
    count, width = vectors.shape
    centres = centres_for(count)
    quantizer = faiss.IndexFlatIP(width)
    index = faiss.IndexIVFScalarQuantizer(
        quantizer, width, centres, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
    )
    rng = np.random.default_rng(0)
    sample = np.sort(rng.choice(count, min(count, _TRAIN_PER_CENTRE * centres), replace=False))
    index.cp.niter, index.cp.seed, index.cp.max_points_per_centroid = 10, 1, _TRAIN_PER_CENTRE
    index.train(np.asarray(vectors[sample], np.float32))
    for start in range(0, count, _BLOCK):
        index.add(np.asarray(vectors[start : start + _BLOCK], np.float32))
        release_pages(vectors)
        if progress is not None:
            progress(min(start + _BLOCK, count), count)
    index.nprobe = _probes(index, vectors, recall)
    faiss.write_index(index, str(path))
    return int(index.nprobe)


def extend_inverted(
    before: Path, vectors: NDArray[Any], path: Path, progress: Callable[[int, int], None] | None = None
) -> bool:
    """Write the inverted file `before` with the vectors (N, D) it lacks, keeping its groups; False where it is unfit.

    It must hold the first rows of `vectors`, and at least two thirds of them: groups are made for what was there.
    """
    faiss = require_faiss()
    try:
        index = faiss.read_index(str(before))
    except (RuntimeError, MemoryError, OSError):
        return False
    have, count = int(index.ntotal), len(vectors)
    if index.d != vectors.shape[1] or not 2 * count / 3 <= have <= count:
        return False
    for start in range(have, count, _BLOCK):
        index.add(np.asarray(vectors[start : start + _BLOCK], np.float32))
        release_pages(vectors)
        if progress is not None:
            progress(min(start + _BLOCK, count), count)
    faiss.write_index(index, str(path))
    return True


def _probes(index: Any, vectors: NDArray[Any], recall: float, k: int = 10, queries: int = 64) -> int:
    """Groups to look at so that `recall` of the k true neighbours of sampled vectors, slightly moved, are found."""
    rng = np.random.default_rng(1)
    chosen = np.asarray(vectors[np.sort(rng.choice(len(vectors), queries, replace=False))], np.float32)
    spread = np.linalg.norm(chosen, axis=1).mean() / np.sqrt(vectors.shape[1])
    asked = chosen + 0.5 * spread * rng.standard_normal(chosen.shape).astype(np.float32)
    asked /= np.maximum(np.linalg.norm(asked, axis=1, keepdims=True), 1e-12)
    true = exact_nearest(vectors, asked, k)[1]
    probes = 4
    while probes < min(_MOST_PROBES, index.nlist):
        index.nprobe = probes
        listed = index.search(asked, k)[1]
        held = np.mean([len(set(a) & set(b)) / k for a, b in zip(true.tolist(), listed.tolist(), strict=True)])
        if held >= recall:
            break
        probes *= 2
    return int(min(probes, index.nlist))


def load_inverted(path: Path, pairs: int, width: int) -> Any:
    """Open an inverted file, its lists memory-mapped."""
    faiss = require_faiss()
    if not path.is_file():
        raise InputError(f"{path} is missing; make the index again")
    try:
        index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY)
    except (RuntimeError, MemoryError):
        raise InputError(f"{path} is damaged; make the index again") from None
    if index.ntotal != pairs or index.d != width:
        raise InputError(f"{path} holds {index.ntotal:,} vectors of {index.d}, not {pairs:,} of {width}; make it again")
    return index


def search_inverted(
    index: Any, queries: NDArray[np.float32], k: int, only: NDArray[np.bool_] | None = None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Scores (q, k) and rows (q, k); rows are -1 where the groups looked at hold fewer.

    Where few pairs pass `only` (N,), so many more groups are looked at.
    """
    queries = np.ascontiguousarray(queries)
    if only is None:
        scores, rows = index.search(queries, k)
        return scores, rows.astype(np.int64)
    faiss = require_faiss()
    share = max(float(only.mean()), 1e-6)
    probes = int(min(index.nlist, np.ceil(index.nprobe / share)))
    passing = faiss.IDSelectorBitmap(np.packbits(only, bitorder="little"))
    scores, rows = index.search(queries, k, params=faiss.SearchParametersIVF(sel=passing, nprobe=probes))
    return scores, rows.astype(np.int64)
