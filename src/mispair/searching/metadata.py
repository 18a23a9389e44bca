"""The metadata of an index: some rows of a Parquet file, by number, without reading the rest."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mispair.errors import InputError

_KEPT = 64  # row groups kept in memory, the last ones used


class Metadata:
    """One row per pair. Row groups are read when first asked for and a few are kept. Safe across threads."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = pq.ParquetFile(path, memory_map=True)
        except (OSError, pa.ArrowException):
            raise InputError(f"{path} is missing or damaged; make the index again") from None
        groups = self._file.metadata.num_row_groups
        self._ends = np.cumsum([self._file.metadata.row_group(g).num_rows for g in range(groups)])
        self._kept: OrderedDict[int, pa.Table] = OrderedDict()
        self._masks: dict[tuple[str | None, bool | None], NDArray[np.bool_]] = {}
        self._lock = threading.Lock()
        self._path = path

    def __len__(self) -> int:
        return int(self._file.metadata.num_rows)

    def column(self, name: str) -> NDArray[Any]:
        """A whole column of numbers, NaN where there is none. Not by `to_numpy`, which loads pandas if it is there."""
        values = self._read(name)
        if values.null_count:
            values = pc.fill_null(values.cast(pa.float64()), float("nan"))
        return np.concatenate([np.from_dlpack(chunk) for chunk in values.chunks] or [np.empty(0)])

    def _read(self, name: str) -> pa.ChunkedArray:
        try:
            with self._lock:
                return self._file.read([name])[name]
        except (OSError, pa.ArrowException, KeyError):
            raise InputError(f"{self._path} is damaged; make the index again") from None

    @property
    def schema(self) -> pa.Schema:
        """Names and types of all columns."""
        return self._file.schema_arrow

    def part(self, start: int, stop: int) -> pa.Table:
        """Rows `start` to `stop`, all columns."""
        first, last = np.searchsorted(self._ends, [start, stop - 1], side="right").tolist()
        begins = int(self._ends[first - 1]) if first else 0
        with self._lock:
            table = self._file.read_row_groups(list(range(first, last + 1)), use_threads=False)
        return table.slice(start - begins, stop - start)

    def distinct(self, name: str) -> list[Any]:
        """The distinct values of a column, in the order they first come."""
        return list(self._read(name).unique().to_pylist())

    def where(self, split: str | None = None, suspicious: bool | None = None) -> NDArray[np.bool_] | None:
        """(N,) the pairs of a split, and those an audit calls mismatched, or the others; None where all are meant."""
        if split is None and suspicious is None:
            return None
        with self._lock:
            if (split, suspicious) in self._masks:
                return self._masks[split, suspicious]
        kept = np.ones(len(self), bool)
        if split is not None:
            kept &= pc.equal(self._read("split"), split).to_numpy(zero_copy_only=False)
        if suspicious is not None:
            p = self.column("p_mismatch") if "p_mismatch" in self.schema.names else np.full(len(self), np.nan)
            kept &= (p > 0.5) if suspicious else (p <= 0.5)  # NaN, not judged, is neither
        with self._lock:
            if len(self._masks) >= _KEPT:
                self._masks.clear()
            self._masks[split, suspicious] = kept
        return kept

    def same(self, chosen: NDArray[np.bool_], captions: pa.ChunkedArray) -> bool:
        """Whether the chosen pairs (N,) have these captions, in order."""
        return bool(self._read("caption").filter(pa.array(chosen)).equals(captions))

    def rows(self, rows: NDArray[np.int64]) -> list[dict[str, Any]]:
        """The records of some rows, in their order."""
        groups = np.searchsorted(self._ends, rows, side="right")
        records = []
        for row, group in zip(rows.tolist(), groups.tolist(), strict=True):
            start = int(self._ends[group - 1]) if group else 0
            records.append(self._group(group).slice(row - start, 1).to_pylist()[0])
        return records

    def _group(self, group: int) -> pa.Table:
        with self._lock:
            if group not in self._kept:
                try:
                    self._kept[group] = self._file.read_row_group(group, use_threads=False)
                except (OSError, pa.ArrowException):
                    raise InputError(f"{self._path} is damaged; make the index again") from None
                if len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(group)
            return self._kept[group]
