"""Decisions: what reviewers said about pairs, one JSON line each, appended and flushed to disk before it is answered.

The first line of `decisions.jsonl` names the audit it belongs to. Nothing is ever changed in place: undoing appends a
line that takes back an earlier one. A line that a kill cut in half is dropped when the file is read, with a word.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mispair.errors import InputError
from mispair.missing_path import does_not_exist, is_missing
from mispair.value_words import complaint

Answer = Literal["right", "wrong", "proposal", "edit", "skip"]
ItemOrigin = Literal["random", "useful", "control", "disagreement"]
FILE = "decisions.jsonl"
_MOST_BYTES = 1 << 30


class Decision(BaseModel):
    """One answer of one reviewer about one pair."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int = Field(ge=1)  # position in the file, from 1; what an undo names
    pair: int = Field(ge=0)
    answer: Answer
    reviewer: str = Field(min_length=1, max_length=100)
    time: str = Field(max_length=40)
    p_mismatch: float | None = Field(default=None, ge=0, le=1)  # what the model said at that moment
    origin: ItemOrigin = "useful"  # why the pair was shown
    caption: str | None = Field(default=None, max_length=10_000)  # the new caption of an edit, or the proposal taken
    proposed_pair: int | None = Field(default=None, ge=0)  # the pair whose caption was taken
    control: Literal["re-paired", "sure"] | None = None  # of a control: what it was made of
    seconds: float | None = Field(default=None, ge=0, allow_inf_nan=False)

    @property
    def mismatched(self) -> bool | None:
        """What the answer says of the given pair; None for a skip."""
        return None if self.answer == "skip" else self.answer != "right"


class _Undo(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    undo: int = Field(ge=1)
    reviewer: str = Field(min_length=1, max_length=100)
    time: str = Field(max_length=40)


class _DecisionsHeader(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    mispair_decisions: Literal[1]
    audit: str  # `audit_identity` of the audit that was reviewed
    pairs: int = Field(ge=0)


@dataclass(frozen=True)
class DecisionFile:
    """A decisions file as read: what stands after all undos, in the order it was said."""

    audit: str
    pairs: int
    standing: tuple[Decision, ...]
    lines: int  # answers and undos written so far
    note: str | None = None  # what was dropped while reading


def read_decisions(path: Path) -> DecisionFile:
    """Read a decisions file.

    Raises:
        InputError: no such file, not a decisions file, or a damaged line that is not the last.
    """
    content = _bytes(path)
    *whole, rest = content.split(b"\n")
    note = "its last line was cut off by a kill and is left out" if rest else None
    if not whole:
        raise InputError(f"{path} is not a decisions file: it has no first line; delete it and review again")
    header = _header(path, whole[0])
    standing: dict[int, Decision] = {}
    for number, line in enumerate(whole[1:], 1):
        entry = _entry(path, number, line, header.pairs)
        if isinstance(entry, Decision):
            standing[number] = entry
        else:
            standing.pop(entry.undo, None)
    return DecisionFile(header.audit, header.pairs, tuple(standing.values()), len(whole) - 1, note)


def latest_by_pair(decisions: Iterable[Decision]) -> dict[int, Decision]:
    """The last word on every pair, controls and skips left out: they say nothing about the data."""
    return {d.pair: d for d in decisions if d.control is None and d.answer != "skip"}


class DecisionLog:
    """An open decisions file: answers are appended, flushed to disk, then acknowledged. Safe across threads."""

    def __init__(self, path: Path, audit: str, pairs: int) -> None:
        self.path = path
        self._lock = threading.Lock()
        self.note: str | None = None
        if path.exists():
            self._take_up(audit)
        else:
            self._lines = 0
            self._standing: dict[int, Decision] = {}
            header = _DecisionsHeader(mispair_decisions=1, audit=audit, pairs=pairs)
            self._append(header.model_dump(), create=True)
        self.pairs = pairs

    def _take_up(self, audit: str) -> None:
        past = read_decisions(self.path)
        if past.audit != audit:
            raise InputError(
                f"{self.path} holds decisions about another audit; review the audit it belongs to, or move it away"
            )
        if past.note is not None:  # cut the half line off, or the next one would be joined to it
            content = self.path.read_bytes()
            with open(self.path, "rb+") as file:
                file.truncate(content.rfind(b"\n") + 1)
                os.fsync(file.fileno())
        self._lines, self.note = past.lines, past.note
        self._standing = {decision.number: decision for decision in past.standing}

    @property
    def standing(self) -> tuple[Decision, ...]:
        """All answers that were not taken back, in order."""
        with self._lock:
            return tuple(self._standing.values())

    def of(self, reviewer: str) -> tuple[Decision, ...]:
        """The standing answers of one reviewer, in order."""
        return tuple(d for d in self.standing if d.reviewer == reviewer)

    def decide(self, pair: int, answer: Answer, reviewer: str, **about: Any) -> Decision:
        """Append one answer; when this returns it is on disk.

        Raises:
            InputError: values that make no decision (pair out of range, an edit without a caption, ...).
        """
        return self.decide_all([{"pair": pair, "answer": answer, "reviewer": reviewer, **about}])[0]

    def decide_all(self, answers: Sequence[Mapping[str, Any]]) -> list[Decision]:
        """Append several answers at once, all or none; when this returns they are on disk.

        Args:
            answers: values of `Decision` without its number; the time is now where none is given.
        """
        with self._lock:
            decisions = [self._checked(values, self._lines + 1 + k) for k, values in enumerate(answers)]
            self._append(*(d.model_dump(exclude={"number"}, exclude_none=True) for d in decisions))
            self._lines += len(decisions)
            self._standing |= {decision.number: decision for decision in decisions}
        return decisions

    def _checked(self, values: Mapping[str, Any], number: int) -> Decision:
        if not 0 <= values["pair"] < self.pairs:
            raise InputError(f"there is no pair {values['pair']}; pairs go from 0 to {self.pairs - 1}")
        if values["answer"] in ("edit", "proposal") and values.get("caption") is None:
            raise InputError(f"the answer {values['answer']!r} needs the caption that is to stand there")
        try:
            return Decision(number=number, **{**values, "time": values.get("time") or _now()})
        except ValidationError as error:
            first = error.errors()[0]
            raise InputError(f"{'.'.join(map(str, first['loc']))}: {complaint(first)}") from None

    def undo(self, reviewer: str) -> Decision | None:
        """Take back the reviewer's last standing answer; None when there is none left."""
        with self._lock:
            mine = [d for d in self._standing.values() if d.reviewer == reviewer]
            if not mine:
                return None
            self._append(_Undo(undo=mine[-1].number, reviewer=reviewer, time=_now()).model_dump())
            self._lines += 1
            return self._standing.pop(mine[-1].number)

    def _append(self, *lines: dict[str, Any], create: bool = False) -> None:
        content = "".join(json.dumps(values, ensure_ascii=True, allow_nan=False) + "\n" for values in lines)
        size = self.path.stat().st_size if not create else 0
        try:
            with open(self.path, "xb" if create else "ab") as file:
                file.write(content.encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            self._cut(size)
            raise InputError(f"{self.path} cannot be written ({error.strerror}); the answer was not kept") from None

    def _cut(self, size: int) -> None:
        """Half a line on a full disk must not stay in front of the next one."""
        with contextlib.suppress(OSError):
            os.truncate(self.path, size)


def merge_imported(log: DecisionLog, imported: Sequence[Decision]) -> int:
    """Append decisions that came from elsewhere; how many were new (a reviewer's same answer is taken once)."""
    known = {_said(d) for d in log.standing}
    new = {_said(d): d for d in imported}
    chosen = [d.model_dump(exclude={"number"}, exclude_none=True) for key, d in new.items() if key not in known]
    log.decide_all(chosen)
    return len(chosen)


def _said(decision: Decision) -> tuple[Any, ...]:
    """Who said what of which pair. A control is an answer of its own each time: it measures the reviewer."""
    when = None if decision.control is None else decision.time
    return decision.reviewer, decision.pair, decision.answer, decision.caption, decision.control, when


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


def _bytes(path: Path) -> bytes:
    try:
        if is_missing(path):
            raise InputError(f"{does_not_exist(path)}; expected decisions ('mispair review' writes {FILE})")
        if not path.is_file():
            raise InputError(f"{path} is not an ordinary file; 'mispair review' writes {FILE}")
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(f"{path} is larger than any review ({path.stat().st_size:,} bytes); is it the right file?")
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror})") from None


def _header(path: Path, line: bytes) -> _DecisionsHeader:
    try:
        return _DecisionsHeader.model_validate_json(line)
    except ValidationError:
        raise InputError(
            f"{path} is not a decisions file of this version of mispair; move it away and review again"
        ) from None


def _entry(path: Path, number: int, line: bytes, pairs: int) -> Decision | _Undo:
    try:
        values = json.loads(line)
        if isinstance(values, dict) and "undo" in values:
            return _Undo.model_validate(values)
        decision = Decision.model_validate({**values, "number": number})
    except (ValueError, TypeError, RecursionError):
        raise InputError(f"{path}, line {number + 1} is damaged; delete that line, the others can stay") from None
    if decision.pair >= pairs:
        raise InputError(f"{path}, line {number + 1}: there is no pair {decision.pair} of {pairs:,}; delete the line")
    return decision
