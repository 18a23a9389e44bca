"""JSONL: one JSON object per line, its keys are the columns."""

from __future__ import annotations

import json
from pathlib import Path

from mispair.data.files.reading import read_lines
from mispair.data.files.table_rows import WHAT, TableRows, Value
from mispair.errors import InputError
from mispair.value_words import kind_of


def read_json_lines(path: Path) -> TableRows:
    """The objects of a JSONL file; a key that one of them lacks is None there. Blank lines are skipped.

    Raises:
        InputError: a line that is no JSON object, or that spells half of a character.
    """
    lines = read_lines(path, WHAT)
    records: list[dict[str, Value]] = []
    numbers: list[int] = []
    for number, line in enumerate(lines.lines, 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):  # JSONDecodeError is a ValueError
            raise InputError(f"{path}, line {number}: not JSON; expected one object per line, so repair it") from None
        if "\\u" in line and not is_text(value):
            raise InputError(
                f"{path}, line {number}: half of a character (a lone surrogate); expected whole ones, repair it"
            )
        if not isinstance(value, dict):
            raise InputError(f"{path}, line {number}: {kind_of(value)}; expected an object with named columns")
        records.append(value)
        numbers.append(number)
    header = list(dict.fromkeys(name for value in records for name in value))
    columns = {name: [value.get(name) for value in records] for name in header}
    return TableRows(header, columns, numbers, lines.replaced)


def is_text(value: Value) -> bool:
    """Whether all strings can be written: JSON can spell half of a surrogate pair, UTF-8 cannot."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
