"""Is this the data of that time? A hash of all of it: every feature row, every caption, every pairing.

A large array costs a pass over the file, so what it told is kept in the cache under the file's path, size,
times and inode; a file that was written to since then has another time and is read again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mispair.atomic import write_text
from mispair.data.cache_folder import cache_folder
from mispair.data.features import FeatureStore
from mispair.data.source import Source
from mispair.errors import InputError
from mispair.ordinary_file import read_ordinary

_BLOCK_BYTES = 32_000_000
_QUICK_BYTES = 32_000_000  # hashing less than this is quicker than keeping the result is worth


def content_hash(source: Source) -> str:
    """SHA-256 of captions, pairing and features of both sides, all of them, or of pictures where those were read."""
    digest = hashlib.sha256(np.ascontiguousarray(source.image_of_text, "<i8").tobytes())
    for store in (source.images, source.text_features):
        digest.update((source.pictures_hash or "-").encode() if store is None else hash_features(store).encode())
    for caption in source.captions or ():
        digest.update(caption.encode(errors="surrogatepass"))
        digest.update(b"\n")
    return digest.hexdigest()


@dataclass(frozen=True)
class Examined:
    """What one pass over all rows of a store told."""

    hash: str  # BLAKE2 of the rows in their order, as they lie there, and of how many regions of each are real
    broken: tuple[int, ...]  # the first rows of the file that hold NaN, infinity or what float32 cannot hold
    broken_count: int


def hash_features(store: FeatureStore) -> str:
    """The hash of all rows of the store."""
    return examine_features(store).hash


def examine_features(store: FeatureStore) -> Examined:
    """Read all rows once, or know from the cache what that told the last time."""
    note = _note(store)
    kept = None if note is None else _kept(note)
    if kept is not None:
        return kept
    heading = f"{len(store)} {store.array.shape[1:]} {store.array.dtype.str}"
    digest = hashlib.blake2b(heading.encode(), digest_size=32)
    broken: list[int] = []
    start = 0
    for block in _raw_blocks(store):
        digest.update(block.reshape(-1).view(np.uint8).data)
        wrong = np.flatnonzero(~_usable(block)) + start
        broken += (wrong if store.rows is None else store.rows[wrong]).tolist()
        start += len(block)
    if store.lengths is not None:
        rows = np.arange(len(store)) if store.rows is None else store.rows
        digest.update(np.ascontiguousarray(store.lengths[rows], "<i8").tobytes())
    result = Examined(digest.hexdigest(), tuple(broken[:20]), len(broken))
    if note is not None:
        _keep(note, result)
    return result


def _usable(block: NDArray[Any]) -> NDArray[np.bool_]:
    """(B,) whether every number of a row is one that float32 can hold."""
    flat = block.reshape(len(block), -1)
    with np.errstate(invalid="ignore"):
        largest = np.maximum(flat.max(1), -flat.min(1))  # NaN stays NaN
    return np.asarray(np.isfinite(largest) & (largest <= np.finfo(np.float32).max))


def _raw_blocks(store: FeatureStore) -> Iterator[NDArray[Any]]:
    """The rows as they lie there, some tens of megabytes at a time."""
    size = max(1, _BLOCK_BYTES * len(store.array) // store.array.nbytes)
    for start in range(0, len(store), size):
        yield store.raw(np.arange(start, min(start + size, len(store))))


def _note(store: FeatureStore) -> Path | None:
    """Where the hash of these rows of this file is kept; None where it is not worth keeping."""
    if store.path is None or store.array.nbytes < _QUICK_BYTES:
        return None
    try:
        status = os.stat(store.path)
    except OSError:
        return None
    rows = b"all" if store.rows is None else np.ascontiguousarray(store.rows, "<i8").tobytes()
    lengths = b"all" if store.lengths is None else np.ascontiguousarray(store.lengths, "<i8").tobytes()
    facts = (os.path.realpath(store.path), status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    key = hashlib.sha256(repr(facts).encode(errors="surrogatepass") + rows + lengths).hexdigest()
    return cache_folder() / "hashes" / key


def _kept(note: Path) -> Examined | None:
    try:
        content = json.loads(read_ordinary(note))
        kept = Examined(str(content["hash"]), tuple(map(int, content["broken"])), int(content["broken_count"]))
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return kept if len(kept.hash) == 64 else None


def _keep(note: Path, result: Examined) -> None:
    """A cache that cannot be written costs time the next time, nothing else."""
    with contextlib.suppress(InputError):
        write_text(note, json.dumps(asdict(result)))
