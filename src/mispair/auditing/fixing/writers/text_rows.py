"""Rewriting a table of pairs: rows leave, captions change, a column is added; every other byte stays as it was."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mispair.auditing.fixing.slots import Slot
from mispair.auditing.fixing.writers.arrow_rows import rewrite_parquet
from mispair.data.config import DataConfig
from mispair.data.files.delimited import long_fields, separator
from mispair.data.files.reading import decode_line, is_utf8
from mispair.data.files.rows import column_names, read_rows
from mispair.data.readers.table import table_columns
from mispair.errors import InputError

SlotsByLine = dict[int, list[Slot]]  # by line (text) or row (Parquet), one slot per caption of it; rows not named stay


def rewrite_table(path: Path, config: DataConfig, plan: SlotsByLine, out: Path, weighted: bool = False) -> None:
    """Write `path`, changed as `plan` says, to `out`; `weighted`: with weights though no row of it was judged."""
    columns = table_columns(path, config)
    weighted = weighted or any(slot.weight is not None for slots in plan.values() for slot in slots)
    if weighted and "weight" in column_names(path):
        raise InputError(f"{path} has a column 'weight' already; rename it, or use --action drop")
    change = RowChange(columns.image, columns.caption, weighted)
    if path.suffix.lower() == ".parquet":
        rewrite_parquet(path, change.columns, lambda row, values: change(values, plan.get(row + 1)), out, weighted)
    elif path.suffix.lower() in (".jsonl", ".ndjson"):
        _rewrite_json(path, plan, change, out)
    else:
        with long_fields():  # what could be read can be written
            _rewrite_csv(path, read_rows(path).header, plan, change, out)


@dataclass(frozen=True, slots=True)
class RowChange:
    """How a row of a table becomes another one."""

    image: str | None
    caption: str | None
    weighted: bool

    @property
    def columns(self) -> list[str]:
        """The columns it must see."""
        return [name for name in (self.image, self.caption) if name is not None]

    def __call__(self, row: dict[str, Any], slots: list[Slot] | None) -> dict[str, Any] | None:
        """The row as it becomes; the same object when nothing changes, None when it leaves."""
        given = row[self.caption] if self.caption is not None else None
        if slots is None:
            one = [1.0] * len(given) if isinstance(given, list) else 1.0
            return {**row, "weight": one} if self.weighted else row
        kept = [slot for slot in slots if slot.keep]
        if not kept:
            return None
        changed = dict(row)
        moved = {slot.image for slot in kept if slot.image is not None}
        if moved and (len(moved) > 1 or len(kept) < len(slots) or len({slot.image for slot in kept}) > 1):
            raise InputError("a row with several captions cannot show several images; write one caption per row first")
        if moved and self.image is None:
            raise InputError("the table holds its pictures and no names of them: a row cannot show another's picture")
        if moved and self.image is not None:
            changed[self.image] = moved.pop()
        if self.caption is not None:
            several = given if isinstance(given, list) else [given]
            texts = [
                old if slot.caption is None else slot.caption
                for old, slot in zip(several, slots, strict=True)
                if slot.keep
            ]
            changed[self.caption] = texts if isinstance(given, list) else texts[0]
        if self.weighted:
            weights = [1.0 if slot.weight is None else slot.weight for slot in kept]
            changed["weight"] = weights if isinstance(given, list) else weights[0]
        return row if changed == row else changed


def _rewrite_csv(path: Path, header: list[str], plan: SlotsByLine, change: RowChange, out: Path) -> None:
    content = path.read_bytes()
    raw = content.split(b"\n")
    first = raw[0].decode(errors="surrogateescape")
    delimiter = separator(path, first)
    reader = csv.reader((line.decode(errors="surrogateescape") + "\n" for line in raw), delimiter=delimiter)
    encoding = encoding_of(content)
    written: list[bytes] = []
    start, seen_header = 0, False
    for fields in _rows_of(reader):
        # Python's reader counts the lines it has taken; the bytes of a record are those lines.
        record = b"\n".join(raw[start : reader.line_num]) + (b"\n" if reader.line_num < len(raw) else b"")
        start = reader.line_num
        if not fields:
            written.append(record)
            continue
        if not seen_header:
            seen_header = True
            written.append(_extended(record, f"{delimiter}weight") if change.weighted else record)
            continue
        before = dict(zip(header, fields, strict=True))
        after = change(before, _spelled(plan.get(start), encoding, path))
        if after is before:
            written.append(record)
        elif after is not None:
            values = [str(after[name]) for name in (*header, *(["weight"] if change.weighted else []))]
            same = all(after[name] == before[name] for name in header)
            if same:
                written.append(_extended(record, f"{delimiter}{after['weight']:.6g}"))
            else:
                text = io.StringIO()
                csv.writer(text, delimiter=delimiter, lineterminator="").writerow(values)
                written.append(text.getvalue().encode(errors="surrogateescape") + _ending(record))
    out.write_bytes(b"".join(written))


def _rows_of(reader: Iterator[list[str]]) -> Iterator[list[str]]:
    with long_fields():
        yield from reader


def encoding_of(content: bytes) -> str:
    """How new captions of this file are written: in UTF-8, or in Latin-1 as Windows has it where it is no UTF-8."""
    return "utf-8" if is_utf8(content) else "cp1252"


def encode_in(encoding: str, text: str, path: Path) -> bytes:
    """A new caption in the encoding of the file `path`. Raises InputError where it cannot be written in that."""
    try:
        return text.encode(encoding, "surrogateescape" if encoding == "utf-8" else "strict")
    except UnicodeEncodeError:
        raise InputError(
            f"{path} is Latin-1, in which {text[:40]!r} cannot be written; save it as UTF-8 first"
        ) from None


def _spelled(slots: list[Slot] | None, encoding: str, path: Path) -> list[Slot] | None:
    """The slots with captions as their bytes will be, for a writer that lets through what is no UTF-8."""
    return slots and [
        slot
        if slot.caption is None
        else replace(slot, caption=encode_in(encoding, slot.caption, path).decode(errors="surrogateescape"))
        for slot in slots
    ]


def _ending(record: bytes) -> bytes:
    return b"\r\n" if record.endswith(b"\r\n") else b"\n" if record.endswith(b"\n") else b""


def _extended(record: bytes, more: str) -> bytes:
    ending = _ending(record)
    return record[: len(record) - len(ending)] + more.encode() + ending


def _rewrite_json(path: Path, plan: SlotsByLine, change: RowChange, out: Path) -> None:
    written: list[bytes] = []
    lines = _lines(path)
    escaped = not all(map(is_utf8, lines))  # beside lines in Latin-1 only escapes can be read
    for number, line in enumerate(lines, 1):
        text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        if not text.strip():
            written.append(line)
            continue
        before = json.loads(decode_line(text))
        after = change(before, plan.get(number))
        if after is before:
            written.append(line)
        elif after is not None:
            written.append(json.dumps(after, ensure_ascii=escaped).encode() + _ending(line))
    out.write_bytes(b"".join(written))


def _lines(path: Path) -> list[bytes]:
    with path.open("rb") as file:
        return list(file)
