"""Decisions out and in: Parquet, CSV and Label Studio's JSON, by the ending of the file."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from mispair.auditing.verdicts import Verdicts
from mispair.data.files.reading import read_text
from mispair.errors import InputError
from mispair.missing_path import does_not_exist, is_missing
from mispair.reviewing.decisions import Decision
from mispair.spreadsheet import QUOTED, as_cell
from mispair.value_words import complaint

COLUMNS = tuple(name for name in Decision.model_fields if name != "number")
FORMATS = (".parquet", ".csv", ".json")
_MOST_BYTES = 1 << 30


def to_bytes(decisions: Sequence[Decision], kind: str, verdicts: Verdicts) -> bytes:
    """The decisions as the content of a file of `kind` (.parquet, .csv, .json); `verdicts` has what was judged."""
    if kind == ".json":
        return json.dumps(_tasks(decisions, verdicts), ensure_ascii=True, indent=1).encode()
    rows = [d.model_dump(exclude={"number"}) for d in decisions]
    if kind == ".parquet":
        schema = pa.schema(
            [("pair", pa.int64()), ("answer", pa.string()), ("reviewer", pa.string()), ("time", pa.string()),
             ("p_mismatch", pa.float64()), ("origin", pa.string()), ("caption", pa.string()),
             ("proposed_pair", pa.int64()), ("control", pa.string()), ("seconds", pa.float64())]
        )  # fmt: skip
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), sink)
        return sink.getvalue()
    if kind == ".csv":
        out = io.StringIO(newline="")
        writer = csv.writer(out)
        writer.writerow(COLUMNS)
        for row in rows:
            writer.writerow([_quoted(row[name]) for name in COLUMNS])
        return out.getvalue().encode()
    raise InputError(f"decisions are exported as {', '.join(FORMATS)}, not {kind or 'a file without an ending'}")


def read_exchange(path: Path, pairs: int) -> list[Decision]:
    """Decisions from a file that `to_bytes` or Label Studio wrote.

    Raises:
        InputError: a file that is not there, of another kind, or with a row that is no decision (the row is named).
    """
    kind = path.suffix.lower()
    if kind not in FORMATS:
        raise InputError(f"{path}: decisions are imported from {', '.join(FORMATS)}")
    if is_missing(path):
        raise InputError(f"{does_not_exist(path)}; expected decisions that 'mispair review --export' wrote")
    if not path.is_file():
        raise InputError(f"{path} is not an ordinary file; expected decisions that 'mispair review --export' wrote")
    if path.stat().st_size > _MOST_BYTES:
        raise InputError(f"{path} is larger than any review; is it the right file?")
    rows = {".parquet": _from_parquet, ".csv": _from_csv, ".json": _from_tasks}[kind](path)
    decisions = []
    for number, row in enumerate(rows, 1):
        try:
            decision = Decision.model_validate({**row, "number": number})
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "it"
            raise InputError(f"{path}, decision {number}: {where}: {complaint(first)}") from None
        if decision.pair >= pairs:
            raise InputError(f"{path}, decision {number}: there is no pair {decision.pair}; the audit has {pairs:,}")
        decisions.append(decision)
    return decisions


def _quoted(value: Any) -> Any:
    """A cell that a spreadsheet would take for a formula starts with an apostrophe; the way back takes it off."""
    return as_cell(value) if isinstance(value, str) else value


def _unquoted(text: str) -> str:
    return re.sub(QUOTED, r"\1", text)


def _from_csv(path: Path) -> list[dict[str, Any]]:
    reader = csv.DictReader(io.StringIO(read_text(path, "a CSV of decisions"), newline=""), strict=True)
    try:
        rows = list(reader)
    except csv.Error as error:
        raise InputError(f"{path} is not a CSV of decisions ({error})") from None
    missing = {"pair", "answer", "reviewer"} - set(reader.fieldnames or ())
    if missing:
        raise InputError(f"{path} has no column {', '.join(sorted(missing))}; expected {', '.join(COLUMNS)}")
    return [
        {"time": "", **{k: _unquoted(v) for k, v in row.items() if k in COLUMNS and v not in (None, "")}}
        for row in rows
    ]


def _from_parquet(path: Path) -> list[dict[str, Any]]:
    try:
        with pq.ParquetFile(path) as file:
            table = file.read()
        table.validate(full=True)
    except (pa.ArrowException, OSError):
        raise InputError(f"{path} is damaged, or not Parquet") from None
    missing = {"pair", "answer", "reviewer"} - set(table.column_names)
    if missing:
        raise InputError(f"{path} has no column {', '.join(sorted(missing))}; expected {', '.join(COLUMNS)}")
    if len(set(table.column_names)) < len(table.column_names):
        raise InputError(f"{path} has two columns of one name; rename one")
    known = table.select([name for name in COLUMNS if name in table.column_names])
    return [{"time": "", **{k: v for k, v in row.items() if v is not None}} for row in known.to_pylist()]


def _tasks(decisions: Sequence[Decision], verdicts: Verdicts) -> list[dict[str, Any]]:
    """One task per reviewed pair, as Label Studio imports them: the answers as choices, an edit as text.

    Who answered is not said by `completed_by`: Label Studio refuses a file that names somebody who is no member there.
    It stands with the rest in the choice's `meta`, which Label Studio keeps.
    """
    tasks: dict[int, dict[str, Any]] = {}
    for d in decisions:
        if d.control is not None:
            continue
        if d.pair not in tasks:
            row = verdicts.table.slice(d.pair, 1).to_pylist()[0]
            shown = {"pair": d.pair, "image": row["image_id"], "caption": row["caption"]}
            shown["proposed_caption"] = row["proposed_caption"] or ""
            tasks[d.pair] = {"id": d.pair + 1, "data": shown, "annotations": []}
        about = d.model_dump(exclude={"number", "answer", "caption"}, exclude_none=True)
        choice = {"from_name": "answer", "to_name": "image", "type": "choices", "value": {"choices": [d.answer]}}
        result: list[dict[str, Any]] = [{**choice, "meta": {"mispair": about}}]
        if d.caption is not None:
            text = {"text": [d.caption]}
            result.append({"from_name": "new_caption", "to_name": "image", "type": "textarea", "value": text})
        annotation: dict[str, Any] = {"created_at": d.time, "was_cancelled": d.answer == "skip", "result": result}
        if d.seconds is not None:
            annotation["lead_time"] = d.seconds
        tasks[d.pair]["annotations"].append(annotation)
    return list(tasks.values())


def _from_tasks(path: Path) -> list[dict[str, Any]]:
    try:
        tasks = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise InputError(f"{path} is not JSON; expected what Label Studio exports") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror})") from None
    rows = []
    try:
        for task in tasks:
            for annotation in task["annotations"]:
                rows.append(_from_annotation(task, annotation))
    except (KeyError, TypeError, IndexError, AttributeError):
        raise InputError(f"{path} is not a list of Label Studio tasks with annotations") from None
    return rows


def _from_annotation(task: dict[str, Any], annotation: dict[str, Any]) -> dict[str, Any]:
    """A decision: made here, or by somebody in Label Studio, who has a number or an address there."""
    by = annotation.get("completed_by", "label-studio")
    name = by.get("email", by.get("id")) if isinstance(by, dict) else by
    row: dict[str, Any] = {
        "pair": task["data"]["pair"],
        "reviewer": str(name),
        "time": annotation.get("created_at") or "",
        "seconds": annotation.get("lead_time"),
    }
    for part in annotation["result"]:
        if part["type"] == "choices":
            row["answer"] = part["value"]["choices"][0]
            about = (part.get("meta") or {}).get("mispair") or {}
            row |= {k: v for k, v in about.items() if k in COLUMNS and k != "answer"}
        elif part["type"] == "textarea":
            row["caption"] = part["value"]["text"][0]
    if annotation.get("was_cancelled"):
        row["answer"] = "skip"
    if row.get("answer") == "proposal":  # who chooses it there does not write it again
        row.setdefault("caption", task["data"].get("proposed_caption") or None)
    return row
