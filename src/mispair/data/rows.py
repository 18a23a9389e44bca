"""Rows of a CSV, TSV, JSONL or Parquet file as columns of text, with the line each row came from."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from mispair.data.files import plain_file, read_bytes, read_lines, reading
from mispair.errors import InputError

_WHAT = "a table of pairs"
Value = Any  # str, int, float, bool, None, list or dict, as the file has it


@dataclass(frozen=True)
class Rows:
    """A table by column. `lines` are 1-based lines of a text file, or rows of a Parquet file."""

    header: list[str]
    columns: dict[str, list[Value]]
    lines: list[int]
    replaced: tuple[int, ...] = ()  # lines whose bytes were not UTF-8


def read_rows(path: Path) -> Rows:
    """The rows of a table file, by its ending."""
    if path.suffix.lower() == ".parquet":
        rows = _read_parquet(path)
    else:
        rows = _read_text(path, hashlib.blake2b(read_bytes(path, _WHAT)).digest())
    if not rows.lines:
        raise InputError(f"{path} has no rows; expected {_WHAT}, one per row")
    return rows


@lru_cache(maxsize=1)
def _read_text(path: Path, content: bytes) -> Rows:
    """The splits of a table are opened one after the other: parse the same content once."""
    return READERS[path.suffix.lower()](path)


def _read_csv(path: Path) -> Rows:
    lines = read_lines(path, _WHAT)
    first = lines.lines[0] if lines.lines else ""
    # open_clip writes tabs into .csv files, so there the heading decides
    tabs = path.suffix.lower() == ".tsv" or ("\t" in first and "," not in first)
    reader = csv.reader(io.StringIO("\n".join(lines.lines) + "\n"), delimiter="\t" if tabs else ",")
    header: list[str] = []
    found: list[list[str]] = []
    numbers: list[int] = []
    try:
        for row in reader:
            if not row:
                continue  # a blank line
            if not header:
                header = [name.strip() for name in row]
                continue
            if len(row) != len(header):
                raise InputError(
                    f"{path}, line {reader.line_num}: {len(row)} columns; expected {len(header)} as in the heading, so"
                    " quote captions that hold the separator"
                )
            found.append(row)
            numbers.append(reader.line_num)
    except csv.Error as error:
        raise InputError(
            f"{path}, line {reader.line_num}: not readable ({error}); expected {_WHAT}, so look for an unclosed quote"
        ) from None
    columns: dict[str, list[Value]] = {name: [row[k] for row in found] for k, name in enumerate(header)}
    return Rows(header, columns, numbers, lines.replaced)


def _read_jsonl(path: Path) -> Rows:
    lines = read_lines(path, _WHAT)
    found: list[dict[str, Value]] = []
    numbers: list[int] = []
    for number, line in enumerate(lines.lines, 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):  # JSONDecodeError is a ValueError
            raise InputError(f"{path}, line {number}: not JSON; expected one object per line, so repair it") from None
        if "\\u" in line and not _is_text(value):
            raise InputError(
                f"{path}, line {number}: half of a character (a lone surrogate); expected whole ones, repair it"
            )
        if not isinstance(value, dict):
            raise InputError(f"{path}, line {number}: a {type(value).__name__}; expected an object with named columns")
        found.append(value)
        numbers.append(number)
    header = list(dict.fromkeys(name for value in found for name in value))
    columns = {name: [value.get(name) for value in found] for name in header}
    return Rows(header, columns, numbers, lines.replaced)


def _is_text(value: Value) -> bool:
    """Whether all strings can be written: JSON can spell half of a surrogate pair, UTF-8 cannot."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _read_parquet(path: Path) -> Rows:
    import pyarrow as pa
    import pyarrow.parquet as pq

    plain_file(path, _WHAT)
    try:
        with reading(path, _WHAT), pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            if len(set(schema.names)) < len(schema.names):
                raise InputError(f"{path} has two columns of one name; expected different names, so rename one")
            wanted = [field.name for field in schema if not _bulky(field.type)]
            table = file.read(columns=wanted)
            table.validate(full=True)
            columns = {name: table.column(name).to_pylist() for name in table.column_names}
            count = table.num_rows
    except (pa.ArrowException, ValueError, KeyError, TypeError, OverflowError, MemoryError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        reason = str(error).strip().split("\n")[0][:80] or type(error).__name__
        raise InputError(f"{path} is not readable as Parquet ({reason}); expected {_WHAT}: write it again") from None
    return Rows(list(columns), columns, list(range(1, count + 1)))


def _bulky(kind: Any) -> bool:
    """Bytes (pictures inside the table) and embeddings are never a name or a caption: leave them on disk."""
    import pyarrow.types as pt

    if pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_fixed_size_binary(kind):
        return True
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        return not (pt.is_string(kind.value_type) or pt.is_large_string(kind.value_type))
    return bool(pt.is_struct(kind) or pt.is_map(kind) or pt.is_union(kind))


READERS: dict[str, Callable[[Path], Rows]] = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".parquet": _read_parquet,
}
