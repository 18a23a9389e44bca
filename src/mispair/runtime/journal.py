"""One JSON line per event, and what a person sees of it: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from mispair.errors import InputError


class Board(Protocol):
    """Something that draws curves; torch's TensorBoard writer is one."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None: ...


class Journal:
    """Writes `metrics.jsonl` and tells the person in front of it. Silent and writing nothing on the other processes."""

    def __init__(
        self, path: Path | None, console: Console | None = None, interval: float = 30.0, board: Board | None = None
    ) -> None:
        self.path, self.board = path, board
        self.console = console or Console(stderr=True, quiet=path is None)
        self.interval = interval
        self.progress: Progress | None = None
        self._notes: set[str] = set()
        self._told = time.monotonic()

    def __enter__(self) -> Journal:
        if self.console.is_terminal and self.path is not None:
            self.progress = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TextColumn("{task.fields[facts]}"),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=self.console,
                transient=True,
            )
            self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.progress is not None:
            self.progress.stop()

    def event(self, kind: str, **values: Any) -> None:
        """Append one line. Numbers that JSON does not know become null."""
        if self.path is None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"event": kind, **_plain(values)}) + "\n")
        except OSError as error:
            raise InputError(
                f"{self.path} could not be written: {error.strerror}; make room for it and go on with --resume"
            ) from error
        if self.board is not None and "epoch" in values:
            for key, value in _flat(values):
                if key != "epoch":
                    self.board.add_scalar(f"{kind}/{key}", value, int(values["epoch"]))

    def size(self) -> int:
        """Bytes written so far: where a resumed run goes on."""
        return self.path.stat().st_size if self.path is not None and self.path.exists() else 0

    def cut(self, size: int) -> None:
        """Forget what was written behind `size`: it will be written again."""
        if self.path is not None and self.path.exists():
            with self.path.open("rb+") as file:
                file.truncate(min(size, os.fstat(file.fileno()).st_size))

    def say(self, sentence: str) -> None:
        self.console.print(sentence, highlight=False, soft_wrap=True)

    def note(self, sentence: str) -> None:
        """Something worth knowing, once."""
        if sentence not in self._notes:
            self._notes.add(sentence)
            self.event("note", text=sentence)
            self.console.print(f"[yellow]note:[/yellow] {sentence}", highlight=False, soft_wrap=True)

    def tell(self, what: str, done: int, total: int) -> None:
        """How far long work before the first epoch has come: a line every `interval` seconds."""
        if time.monotonic() - self._told >= self.interval:
            self._told = time.monotonic()
            self.say(f"{what}: {done:,} of {total:,}")

    def track(self, items: Iterable[Any], total: int, what: str, facts: Any = None, start: int = 0) -> Iterator[Any]:
        """Pass the items through, showing how far it is. `facts()` gives a short text with the latest figures."""
        task = None
        if self.progress is not None:
            task = self.progress.add_task(what, total=total, completed=start, facts="")
        began = spoke = time.monotonic()
        for done, item in enumerate(items, start + 1):
            yield item
            text = facts() if facts is not None else ""
            if task is not None and self.progress is not None:
                self.progress.update(task, completed=done, facts=text)
            elif time.monotonic() - spoke >= self.interval:
                spoke = time.monotonic()
                left = (spoke - began) / max(done - start, 1) * (total - done)
                self.say(f"{what}: {done}/{total} {text} {_clock(left)} left")
        if task is not None and self.progress is not None:
            self.progress.remove_task(task)


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def _flat(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}/")
        elif isinstance(value, (int, float)):
            yield prefix + key, float(value)
