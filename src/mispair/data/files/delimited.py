"""CSV and TSV: values separated by commas, tabs, semicolons or bars, as the heading says."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mispair.data.files.reading import read_lines
from mispair.data.files.table_rows import WHAT, TableRows, Value
from mispair.errors import InputError

_LONG_FIELD = 131_072  # characters; what Python's reader takes for an unclosed quote, and most often is one
_LONGEST_FIELD = 1 << 30
_QUOTED_LINES = 50  # a field that long over so many lines is an unclosed quote


def separator(path: Path, heading: str) -> str:
    """What separates the columns: a tab in a .tsv; in a .csv whatever splits the heading most often, commas first.

    open_clip writes tabs into .csv files, spreadsheets of half the world write semicolons, and Flickr30k's has bars.
    """
    if path.suffix.lower() == ".tsv":
        return "\t"
    return max(",\t;|", key=heading.count)


def read_delimited(path: Path) -> TableRows:
    """The rows of a CSV or TSV file; blank lines are skipped.

    Raises:
        InputError: a row with another number of columns than the heading, or a quote that never ends.
    """
    lines = read_lines(path, WHAT)
    delimiter = separator(path, lines.lines[0] if lines.lines else "")
    header: list[str] = []
    records: list[list[str]] = []
    numbers: list[int] = []
    with long_fields():
        reader = csv.reader(io.StringIO("\n".join(lines.lines) + "\n"), delimiter=delimiter)
        start = 1
        try:
            for row in reader:
                start, first = reader.line_num + 1, start
                if not row:
                    continue  # a blank line
                if never_closed(row):
                    raise InputError(f"{path}, line {first}: an unclosed quote; expected {WHAT}, so close it")
                if not header:
                    header = [name.strip() for name in row]
                    continue
                if len(row) != len(header):
                    raise InputError(
                        f"{path}, line {reader.line_num}: {len(row)} columns; expected {len(header)} as in the heading,"
                        " so quote captions that hold the separator"
                    )
                records.append(row)
                numbers.append(reader.line_num)
        except csv.Error as error:
            if "\r" in lines.lines[start - 1]:
                # With line feeds beside them they end nothing: lines of Windows that another program added to.
                remedy = "tr '\\r' '\\n'" if len(lines.lines) == 1 else "tr -d '\\r'"
                raise InputError(
                    f"{path}, line {start}: a carriage return that ends no line; expected {WHAT} whose lines end with"
                    f" line feeds, so try: {remedy} < {path}"
                ) from None
            raise InputError(
                f"{path}, line {start}: not readable ({error}); expected {WHAT}, so look for an unclosed quote"
            ) from None
    columns: dict[str, list[Value]] = {name: [row[k] for row in records] for k, name in enumerate(header)}
    return TableRows(header, columns, numbers, lines.replaced)


def never_closed(row: list[str]) -> bool:
    """Whether a row was read on and on behind a quote: a field of many lines, longer than any caption of so many."""
    return any(len(field) > _LONG_FIELD and field.count("\n") > _QUOTED_LINES for field in row)


@contextmanager
def long_fields() -> Iterator[None]:
    """Python's reader takes a caption of 128 KB for an error; the limit is one for the whole process."""
    before = csv.field_size_limit(_LONGEST_FIELD)
    try:
        yield
    finally:
        csv.field_size_limit(before)
