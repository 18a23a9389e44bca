"""The metadata of an index: some rows of a Parquet file, by number, without reading the rest."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mispair.data.files.reading import plain_file
from mispair.errors import InputError

_P = "p_mismatch"  # what an audit said, where one did
_KEPT = 64  # row groups kept in memory, the last ones used


class Metadata:
    """One row per pair. Row groups are read when first asked for and a few are kept. Safe across threads."""

    def __init__(self, path: Path, columns: Mapping[str, pa.DataType]) -> None:
        """Open the file. Raises InputError where it is missing or damaged, or `columns` are not there as said."""
        try:
            self._file = pq.ParquetFile(plain_file(path, "the metadata of an index"), memory_map=True)
        except (OSError, pa.ArrowException, InputError):
            raise InputError(f"{path} is missing or damaged; make the index again") from None
        self._path, self._columns = path, columns
        self._refuse_other_types()
        groups = self._file.metadata.num_row_groups
        self._ends = np.cumsum([self._file.metadata.row_group(g).num_rows for g in range(groups)])
        self._kept: OrderedDict[int, pa.Table] = OrderedDict()
        self._masks: dict[tuple[str | None, bool | None], NDArray[np.bool_]] = {}
        self._lock = threading.Lock()

    def _refuse_other_types(self) -> None:
        schema = self.schema
        for name, kind in self._columns.items():
            if schema.names.count(name) != 1 or schema.field(name).type != kind:
                raise self._damaged(f"it has no column {name} of type {kind}")
        if _P in schema.names and (schema.names.count(_P) > 1 or not pa.types.is_floating(schema.field(_P).type)):
            raise self._damaged(f"its column {_P} holds no numbers")

    def _refuse_nothing(self, name: str, values: pa.ChunkedArray) -> None:
        """Every pair has all of the columns that every index has."""
        if name in self._columns and values.null_count:
            raise self._damaged(f"its column {name} lacks values")

    def _damaged(self, why: str) -> InputError:
        return InputError(f"{self._path} is damaged: {why}; make the index again")

    def __len__(self) -> int:
        return int(self._file.metadata.num_rows)

    def column(self, name: str) -> NDArray[Any]:
        """A whole column of numbers, NaN where there is none. Not by `to_numpy`, which loads pandas if it is there."""
        values = self._read(name)
        self._refuse_nothing(name, values)
        if values.null_count:
            values = pc.fill_null(values.cast(pa.float64()), float("nan"))
        return np.concatenate([np.from_dlpack(chunk) for chunk in values.chunks] or [np.empty(0)])

    def _read(self, name: str) -> pa.ChunkedArray:
        try:
            with self._lock:
                read = self._file.read([name])[name]
            read.validate(full=True)
            return read
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
        try:
            with self._lock:
                table = self._file.read_row_groups(list(range(first, last + 1)), use_threads=False)
            table.validate(full=True)
        except (OSError, pa.ArrowException):
            raise InputError(f"{self._path} is damaged; make the index again") from None
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
            p = self.column(_P) if _P in self.schema.names else np.full(len(self), np.nan)
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
                    read = self._file.read_row_group(group, use_threads=False)
                    read.validate(full=True)  # texts that are none
                except (OSError, pa.ArrowException):
                    raise InputError(f"{self._path} is damaged; make the index again") from None
                for name in self._columns:
                    self._refuse_nothing(name, read[name])
                self._kept[group] = read
                if len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(group)
            return self._kept[group]
