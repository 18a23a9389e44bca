"""Pictures inside a table: a column of bytes, or of {"bytes", "path"} as Hugging Face writes it.

Parquet is read by row group, the last ones kept; Arrow files are mapped, so a picture is read where it lies.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mispair.data.files.parquet import open_parquet
from mispair.data.files.picture_folder import FolderStore
from mispair.data.files.reading import plain_file, reading
from mispair.errors import InputError
from mispair.pictures.decode import Broken

PICTURE_COLUMNS = ("image", "img", "picture", "photo", "jpg", "jpeg", "png", "webp", "image_bytes", "bytes")
_KEPT_BYTES = 256 << 20  # of row groups
_FEW_ROWS = 1_000_000  # any file may name so many; of more, each needs a byte at least
ColumnPlace = tuple[int, int, int]  # which file, which row group or batch of it, which row of that


def picture_columns(schema: Any) -> list[str]:
    """Columns of a pyarrow schema that can hold pictures: those with a usual name first."""
    names = [field.name for field in schema if _way_of_holding(field.type)]
    return sorted(names, key=lambda name: name.lower() not in PICTURE_COLUMNS)


def refuse_other_columns(schemas: Mapping[Path, Any], names: Iterable[str], picture: str | None) -> None:
    """Raise InputError where a file lacks a column of the first one, or holds its pictures in another way."""
    first, usual = next(iter(schemas.items()))
    wanted = list(dict.fromkeys([*names, *([] if picture is None else [picture])]))
    for path, schema in schemas.items():
        missing = [name for name in wanted if schema.get_field_index(name) < 0]
        if missing:
            raise InputError(f"{path} lacks the column {missing[0]!r} of {first.name}; expected the same in all files")
        if picture is not None:
            here, there = schema.field(picture).type, usual.field(picture).type
            if _way_of_holding(here) != _way_of_holding(there):
                raise InputError(
                    f"{path}: the column {picture!r} holds {here}, in {first.name} {there}; expected the same in all"
                    " files"
                )


def _way_of_holding(kind: Any) -> str:
    """How a column of this type of pyarrow's holds pictures; empty where it holds none."""
    import pyarrow.types as pt

    if pt.is_struct(kind):
        inner = [name for name in ("bytes", "path") if kind.get_field_index(name) >= 0]
        return " and ".join(inner) if "bytes" in inner else ""
    return "as they are" if pt.is_binary(kind) or pt.is_large_binary(kind) else ""


@dataclass(eq=False)
class ParquetStore:
    """Reads pictures of a column of Parquet files; a row group is decoded once for all its pictures in a row."""

    paths: tuple[Path, ...]
    column: str
    beside: FolderStore | None = None  # where a picture lies of which the table holds only the path
    _groups: OrderedDict[tuple[int, int], Any] = field(default_factory=OrderedDict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def read(self, place: ColumnPlace) -> bytes | Broken:
        file, group, row = place
        try:
            with self._lock:
                value = self._group(file, group)[row].as_py()
        except InputError as error:
            return Broken(str(error)[:200])
        return _content(value, self.beside)

    def _group(self, file: int, group: int) -> Any:
        key = (file, group)
        if key not in self._groups:
            with open_parquet(self.paths[file]) as opened:
                self._groups[key] = opened.read_row_group(group, columns=[self.column]).column(0)
            while len(self._groups) > 1 and sum(one.nbytes for one in self._groups.values()) > _KEPT_BYTES:
                self._groups.popitem(last=False)
        self._groups.move_to_end(key)
        return self._groups[key]


def parquet_places(paths: tuple[Path, ...]) -> list[list[ColumnPlace]]:
    """The place of every row of every file, by file."""
    places: list[list[ColumnPlace]] = []
    for file, path in enumerate(paths):
        with open_parquet(path) as opened:
            groups = [opened.metadata.row_group(group).num_rows for group in range(opened.metadata.num_row_groups)]
        if sum(groups) > max(_FEW_ROWS, os.path.getsize(path)):
            raise InputError(f"{path} is not readable as Parquet (it names more rows than it can hold); write it again")
        places.append([(file, group, row) for group, count in enumerate(groups) for row in range(count)])
    return places


@dataclass(eq=False)
class ArrowStore:
    """Reads pictures of a column of Arrow files (`datasets.save_to_disk`), which stay on disk, mapped."""

    paths: tuple[Path, ...]
    column: str
    beside: FolderStore | None = None
    _tables: dict[int, list[Any]] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def read(self, place: ColumnPlace) -> bytes | Broken:
        file, batch, row = place
        try:
            with self._lock:
                if file not in self._tables:
                    self._tables[file] = arrow_batches(self.paths[file])
                column = self._tables[file][batch].column(self.column)
            return _content(column[row].as_py(), self.beside)
        except InputError as error:
            return Broken(str(error)[:200])


def arrow_batches(path: Path) -> list[Any]:
    """The record batches of an Arrow file or stream, mapped, once what they say of themselves is known to be so."""
    import pyarrow as pa

    what = "an Arrow file as datasets.save_to_disk writes it"
    plain_file(path, what)
    try:
        with reading(path, what):
            source = pa.memory_map(str(path), "r")
            try:
                reader = pa.ipc.open_stream(source)
                batches = list(reader)
            except pa.ArrowInvalid:
                source.seek(0)
                opened = pa.ipc.open_file(source)
                batches = [opened.get_batch(k) for k in range(opened.num_record_batches)]
            for batch in batches:
                batch.validate(full=True)  # places outside the file would be read, texts that are none decoded
                assert all(isinstance(name, str) for name in batch.schema.names)  # one that is none raises here
            return batches
    except (pa.ArrowException, ValueError, KeyError, TypeError, OverflowError, MemoryError) as error:
        if isinstance(error, InputError):
            raise
        reason = str(error).strip().split("\n")[0][:80] or type(error).__name__
        raise InputError(f"{path} is not readable as Arrow ({reason}); expected {what}: write it again") from None


def _content(value: Any, beside: FolderStore | None) -> bytes | Broken:
    if isinstance(value, dict):
        content, path = value.get("bytes"), value.get("path")
        if content is None and isinstance(path, str) and beside is not None:
            return beside.read(path)
        value = content
    return value if isinstance(value, bytes) else Broken("empty: the table holds no picture there")
