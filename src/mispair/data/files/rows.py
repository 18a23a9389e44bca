"""Rows of a CSV, TSV, JSONL or Parquet file as columns of values, with the line each row came from."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from mispair.data.files.delimited import read_delimited
from mispair.data.files.json_lines import read_json_lines
from mispair.data.files.parquet import parquet_names, read_parquet
from mispair.data.files.reading import read_bytes
from mispair.data.files.table_rows import WHAT, TableRows, Value
from mispair.errors import InputError

__all__ = ["TABLES", "TableRows", "Value", "column_names", "read_rows"]

_TEXT = {".csv": read_delimited, ".tsv": read_delimited, ".jsonl": read_json_lines, ".ndjson": read_json_lines}
TABLES = (*_TEXT, ".parquet")  # endings of table files


def column_names(path: Path) -> list[str]:
    """All columns of a table file, also those that hold pictures or vectors."""
    return parquet_names(path) if path.suffix.lower() == ".parquet" else read_rows(path).header


def read_rows(path: Path, columns: Sequence[str] | None = None) -> TableRows:
    """The rows of a table file, by its ending.

    Args:
        columns: of a Parquet file only these are read; None: every column that holds text or numbers and can be read.
            Text files are read whole.
    """
    if path.suffix.lower() == ".parquet":
        rows = read_parquet(path, columns)
    else:
        rows = _read_text(path, hashlib.blake2b(read_bytes(path, WHAT)).digest())
    if not rows.lines:
        raise InputError(f"{path} has no rows; expected {WHAT}, one per row")
    return rows


@lru_cache(maxsize=1)
def _read_text(path: Path, content: bytes) -> TableRows:
    """The splits of a table are opened one after the other: parse the same content once."""
    return _TEXT[path.suffix.lower()](path)
