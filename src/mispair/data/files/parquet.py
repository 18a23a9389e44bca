"""Parquet: the columns somebody needs, and no other; pictures and vectors stay on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mispair.data.files.reading import plain_file, reading
from mispair.data.files.table_rows import WHAT, TableRows, Value
from mispair.errors import InputError


def parquet_names(path: Path) -> list[str]:
    """All columns of the file. No row is read."""
    return list(parquet_schema(path).names)


def parquet_schema(path: Path) -> Any:
    """The pyarrow schema of the file, once its names are known to differ."""
    with open_parquet(path) as file:
        return file.schema_arrow


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """A pyarrow ParquetFile; whatever goes wrong inside the block is said in a sentence about `path`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    plain_file(path, WHAT)
    try:
        with reading(path, WHAT), pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if len(set(names)) < len(names):
                raise InputError(f"{path} has two columns of one name; expected different names, so rename one")
            yield file
    except _unreadable(pa) as error:
        if isinstance(error, InputError):
            raise
        reason = str(error).strip().split("\n")[0][:80] or type(error).__name__
        raise InputError(f"{path} is not readable as Parquet ({reason}); expected {WHAT}: write it again") from None


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> TableRows:
    """The named columns; None: those that hold text or numbers, except what cannot be read.

    A column nobody asked for is never a reason to refuse the file.
    """
    import pyarrow as pa

    values: dict[str, list[Value]] = {}
    with open_parquet(path) as file:
        fields = {field.name: field.type for field in file.schema_arrow}
        for name in fields if columns is None else columns:
            if columns is None and is_bulky(fields[name]):
                continue
            try:
                values[name] = _column(file, name)
            except _unreadable(pa):
                if columns is not None:
                    raise
    sizes = {len(column) for column in values.values()}
    if len(sizes) > 1:
        raise InputError(f"{path} is not readable as Parquet (columns of different lengths); write it again")
    return TableRows(list(fields), values, list(range(1, max(sizes, default=0) + 1)))


def _column(file: Any, name: str) -> list[Value]:
    table = file.read(columns=[name])
    table.validate(full=True)
    values: list[Value] = table.column(name).to_pylist()
    return values


def is_bulky(kind: Any) -> bool:
    """Bytes (pictures inside the table) and embeddings are never a name or a caption: leave them on disk."""
    import pyarrow.types as pt

    if pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_fixed_size_binary(kind):
        return True
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        return not (pt.is_string(kind.value_type) or pt.is_large_string(kind.value_type))
    return bool(pt.is_struct(kind) or pt.is_map(kind) or pt.is_union(kind))


def _unreadable(pa: Any) -> tuple[type[Exception], ...]:
    return (pa.ArrowException, ValueError, LookupError, TypeError, OverflowError, MemoryError, RecursionError)
