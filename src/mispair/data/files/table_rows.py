"""Rows: what every table file becomes, whichever format it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

WHAT = "a table of pairs"  # in sentences that refuse a file
Value = Any  # str, int, float, bool, None, list or dict, as the file has it


@dataclass(frozen=True)
class TableRows:
    """A table by column. `lines` are 1-based lines of a text file, or rows of a Parquet file."""

    header: list[str]  # all columns, also those that were not read
    columns: dict[str, list[Value]]
    lines: list[int]
    replaced: tuple[int, ...] = ()  # lines whose bytes were not UTF-8
