"""Rewriting a table of pairs: rows leave, captions change, a column is added; every other byte stays as it was."""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mispair.data.columns import recognise
from mispair.data.config import DataConfig
from mispair.data.rows import read_rows
from mispair.errors import InputError


@dataclass(frozen=True, slots=True)
class Slot:
    """What becomes of one caption of a row. None: as it is."""

    keep: bool
    caption: str | None = None
    image: str | None = None
    weight: float | None = None


Plan = dict[int, list[Slot]]  # by line (text) or row (Parquet), one slot per caption of it; rows not named stay


def rewrite_table(path: Path, config: DataConfig, plan: Plan, out: Path) -> None:
    """Write `path`, changed as `plan` says, to `out`."""
    rows = read_rows(path)
    columns = recognise(rows.header, config.columns, str(path), needs_caption=config.second is None)
    weighted = any(slot.weight is not None for slots in plan.values() for slot in slots)
    if weighted and "weight" in rows.header:
        raise InputError(f"{path} has a column 'weight' already; rename it, or use --action drop")
    change = _Change(columns.image, columns.caption, weighted)
    if path.suffix.lower() == ".parquet":
        _rewrite_parquet(path, plan, change, out)
    elif path.suffix.lower() in (".jsonl", ".ndjson"):
        _rewrite_json(path, plan, change, out)
    else:
        _rewrite_csv(path, rows.header, plan, change, out)


@dataclass(frozen=True, slots=True)
class _Change:
    image: str
    caption: str | None
    weighted: bool

    def __call__(self, row: dict[str, Any], slots: list[Slot] | None) -> dict[str, Any] | None:
        """The row as it becomes; the same object when nothing changes, None when it leaves."""
        if slots is None:
            return row if not self.weighted else {**row, "weight": 1.0}
        kept = [slot for slot in slots if slot.keep]
        if not kept:
            return None
        changed = dict(row)
        moved = {slot.image for slot in kept if slot.image is not None}
        if moved and (len(moved) > 1 or len(kept) < len(slots) or len({slot.image for slot in kept}) > 1):
            raise InputError("a row with several captions cannot show several images; write one caption per row first")
        if moved:
            changed[self.image] = moved.pop()
        if self.caption is not None:
            given = row[self.caption]
            several = given if isinstance(given, list) else [given]
            texts = [
                old if slot.caption is None else slot.caption
                for old, slot in zip(several, slots, strict=True)
                if slot.keep
            ]
            changed[self.caption] = texts if isinstance(given, list) else texts[0]
        if self.weighted:
            weights = [1.0 if slot.weight is None else slot.weight for slot in kept]
            changed["weight"] = weights if len(slots) > 1 else weights[0]
        return row if changed == row else changed


def _rewrite_csv(path: Path, header: list[str], plan: Plan, change: _Change, out: Path) -> None:
    raw = path.read_bytes().split(b"\n")
    first = raw[0].decode(errors="surrogateescape")
    delimiter = "\t" if path.suffix.lower() == ".tsv" or ("\t" in first and "," not in first) else ","
    reader = csv.reader((line.decode(errors="surrogateescape") + "\n" for line in raw), delimiter=delimiter)
    written: list[bytes] = []
    start, seen_header = 0, False
    for fields in reader:
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
        after = change(before, plan.get(start))
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


def _ending(record: bytes) -> bytes:
    return b"\r\n" if record.endswith(b"\r\n") else b"\n" if record.endswith(b"\n") else b""


def _extended(record: bytes, more: str) -> bytes:
    ending = _ending(record)
    return record[: len(record) - len(ending)] + more.encode() + ending


def _rewrite_json(path: Path, plan: Plan, change: _Change, out: Path) -> None:
    written: list[bytes] = []
    for number, line in enumerate(_lines(path), 1):
        text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        if not text.strip():
            written.append(line)
            continue
        before = json.loads(text)
        after = change(before, plan.get(number))
        if after is before:
            written.append(line)
        elif after is not None:
            written.append(json.dumps(after, ensure_ascii=False).encode() + _ending(line))
    out.write_bytes(b"".join(written))


def _lines(path: Path) -> list[bytes]:
    with path.open("rb") as file:
        return list(file)


def _rewrite_parquet(path: Path, plan: Plan, change: _Change, out: Path) -> None:
    table = pq.read_table(path)
    touched = [name for name in (change.image, change.caption) if name is not None]
    named = table.select(touched).to_pylist()
    kept: list[int] = []
    columns: dict[str, list[Any]] = defaultdict(list)
    for row, before in enumerate(named):
        after = change(before, plan.get(row + 1))
        if after is None:
            continue
        kept.append(row)
        for name in (*touched, *(["weight"] if change.weighted else [])):
            columns[name].append(after[name])
    result = table.take(pa.array(kept, pa.int64()))
    for name in touched:
        at = result.schema.get_field_index(name)
        result = result.set_column(
            at, result.schema.field(name), pa.array(columns[name], result.schema.field(name).type)
        )
    if change.weighted:
        result = result.append_column("weight", pa.array(columns["weight"]))
    pq.write_table(result, out)
