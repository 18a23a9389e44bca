"""FeatureStore: features of one side, read in place from a memory-mapped .npy, never copied whole.

Letters: N items, B rows taken, R regions (1 for a vector per item), F width.
Items with fewer than R regions are padded; how many are real stands in NAME_lens.npy beside NAME.npy, (N,) integers.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mispair.data.files.npy import open_array, open_integers
from mispair.errors import InputError

_SMALL = 64_000_000  # bytes a mapped array may keep in memory
_NEAR = 16  # pages: what lies between two rows this close is read with them, in one request
_FLOATS = ("float16", "float32", "float64")


@dataclass(frozen=True, eq=False)
class FeatureStore:
    """Rows of features. `rows` maps a row of this store to a row of the array, so a subset costs nothing."""

    array: NDArray[Any]  # (N', R, F) or (N', F), float16, float32 or float64, usually memory-mapped
    lengths: NDArray[np.int64] | None = None  # (N',) real regions of each row of the array
    rows: NDArray[np.int64] | None = None  # (N,) row of the array behind each row of the store
    path: Path | None = None

    def __len__(self) -> int:
        return len(self.array) if self.rows is None else len(self.rows)

    @property
    def regions(self) -> int:
        """R: the most regions an item can have."""
        return 1 if self.array.ndim == 2 else int(self.array.shape[1])

    @property
    def width(self) -> int:
        """F: the length of one feature."""
        return int(self.array.shape[-1])

    def take(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """rows (B,) -> features (B, R, F) float32, zero where padded, and their mask (B, R)."""
        source = self._source(rows)
        self._announce(source)
        out = np.empty((len(source), *self.array.shape[1:]), np.float32)
        if self.array.dtype == np.float32:
            # mode="clip" lets numpy write into `out` directly; `_source` has checked the range.
            np.take(np.asarray(self.array), source, axis=0, out=out, mode="clip")
        else:
            with np.errstate(over="ignore"):  # a float64 beyond float32 becomes inf, which `check` reports
                out[...] = np.asarray(self.array)[source]
        self._release()
        out = out.reshape(len(source), self.regions, self.width)
        if self.lengths is None:
            return out, np.ones(out.shape[:2], bool)
        mask = np.arange(self.regions) < self.lengths[source][:, None]
        out[~mask] = 0.0
        return out, mask

    def blocks(self, size: int) -> Iterator[NDArray[np.float32]]:
        """The whole store in order, `size` rows at a time: (size, R, F) float32."""
        for start in range(0, len(self), size):
            yield self.take(np.arange(start, min(start + size, len(self))))[0]

    def subset(self, rows: NDArray[np.int64]) -> FeatureStore:
        """The store of these rows only, in this order; nothing is read."""
        return FeatureStore(self.array, self.lengths, self._source(rows), self.path)

    def raw(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """rows (B,) -> (B, R, F) or (B, F) as they lie there, in the type of the file, padding included."""
        source = self._source(rows)
        self._announce(source)
        values = np.asarray(self.array)[source]
        self._release()
        return values

    def _source(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        rows = np.asarray(rows, np.int64)
        if rows.size and (rows.min() < 0 or rows.max() >= len(self)):
            raise IndexError(f"rows must lie in 0..{len(self) - 1}, got {rows.min()}..{rows.max()}")
        return rows if self.rows is None else self.rows[rows]

    def _pages(self) -> mmap.mmap | None:
        """The memory map, when the array is one and too large to simply stay in memory."""
        pages = getattr(self.array, "_mmap", None)
        large = self.array.nbytes > _SMALL and hasattr(mmap, "MADV_DONTNEED")
        return pages if large and isinstance(pages, mmap.mmap) else None

    def _announce(self, source: NDArray[np.int64]) -> None:
        """Ask for all rows at once: touching them one after the other waits for every page (60 times slower, cold)."""
        pages = self._pages()
        if pages is None or not len(source):
            return
        row, size = self.array.strides[0], mmap.PAGESIZE
        before = getattr(self.array, "offset", 0) % mmap.ALLOCATIONGRANULARITY  # the map starts on a page
        rows = np.unique(source)
        first, last = (before + rows * row) // size, (before + (rows + 1) * row - 1) // size
        apart = np.flatnonzero(first[1:] - last[:-1] > _NEAR)
        starts, stops = first[np.append(0, apart + 1)] * size, (last[np.append(apart, -1)] + 1) * size
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
            pages.madvise(mmap.MADV_WILLNEED, start, min(stop, len(pages)) - start)

    def _release(self) -> None:
        """Give the pages back: they stay in the system's cache, but a pass over 33 GB no longer counts as ours."""
        pages = self._pages()
        if pages is not None:
            pages.madvise(mmap.MADV_DONTNEED)


def open_features(path: str | os.PathLike[str], what: str = "an array of features") -> FeatureStore:
    """The features in `path` and, when there is one, their NAME_lens.npy."""
    path = Path(path)
    array = open_array(path, what)
    if array.dtype.name not in _FLOATS:
        raise InputError(f"{path} holds {array.dtype}; expected {what} as float16 or float32, so save it with .astype")
    if array.ndim not in (2, 3):
        raise InputError(
            f"{path} has {array.ndim} axes, {array.shape}; expected {what} as (rows, regions, width) or (rows, width)"
        )
    lens = path.with_name(f"{path.stem}_lens.npy")
    return FeatureStore(array, _open_lengths(lens, path, array) if os.path.exists(lens) else None, None, path)


def _open_lengths(lens: Path, path: Path, array: NDArray[Any]) -> NDArray[np.int64]:
    lengths = open_integers(lens, f"the number of real regions in each row of {path.name}")
    if lengths.shape != (len(array),):
        raise InputError(
            f"{lens} has shape {lengths.shape}; expected ({len(array)},), one count per row of {path.name}"
        )
    regions = 1 if array.ndim == 2 else array.shape[1]
    wrong = np.flatnonzero((lengths < 1) | (lengths > regions))
    if wrong.size:
        raise InputError(
            f"{lens}, row {wrong[0]}: {lengths[wrong[0]]} real regions; expected 1 to {regions}, as {path.name} has"
        )
    return lengths
