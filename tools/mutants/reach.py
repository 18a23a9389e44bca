"""Which test reaches which line? A plugin of pytest that writes it down, and what is read back.

Kept per test file. What is known of one stays known until it, a helper beside it or a source file that it reached is
another; so a new test costs its own recording and no more.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest


class _Seen:
    """The lines of one function, and those that have not been run yet."""

    def __init__(self, code: CodeType, ours: bool) -> None:
        self.code = code  # held, so that no other takes its identity
        self.lines = {line for _, _, line in code.co_lines() if line} if ours else set()
        self.left = set(self.lines)

    def line(self, frame: FrameType, event: str, argument: Any) -> Any:
        self.left.discard(frame.f_lineno)
        if not self.left:
            frame.f_trace_lines = False
        return self.line


class Recorder:
    """Lines of `source` that each test runs, by tracing frames of our files alone.

    A function whose lines have all been seen in a test is not traced any more in it: most of them run many times.
    `write` is told of each test file that has come to its end.
    """

    def __init__(self, source: Path, write: Callable[[str, Recorder], None]) -> None:
        self.prefix, self.write = f"{source}/", write
        self.lines: dict[str, dict[str, list[int]]] = {}
        self.seconds: dict[str, float] = {}
        self.red: set[str] = set()
        self._now: dict[int, _Seen] = {}  # by identity: comparing code compares all of it

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        seen = self._now.get(id(code))
        if seen is None:
            seen = self._now[id(code)] = _Seen(code, code.co_filename.startswith(self.prefix))
        return seen.line(frame, event, argument) if seen.left else None

    def _reached(self) -> dict[str, list[int]]:
        found: dict[str, set[int]] = {}
        for seen in self._now.values():
            if seen.lines:
                found.setdefault(seen.code.co_filename[len(self.prefix) :], set()).update(seen.lines - seen.left)
        return {file: sorted(lines) for file, lines in found.items()}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, Any, None]:
        self._now, began = {}, _processor_seconds()
        sys.settrace(self._call)
        try:
            yield
        finally:
            sys.settrace(None)
            self.seconds[item.nodeid] = _processor_seconds() - began
            self.lines[item.nodeid] = self._reached()
            if nextitem is None or _file_of(nextitem.nodeid) != _file_of(item.nodeid):
                self.write(_file_of(item.nodeid), self)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.red.add(report.nodeid)


def _file_of(test: str) -> str:
    return test.split("::")[0]


def _processor_seconds() -> float:
    return sum(os.times()[:4])  # with those of the processes a test has started


class Reach:
    """What is known of the test files `tests`; the quickest test of a place first."""

    def __init__(self, store: Path, root: Path, tests: list[Path]) -> None:
        self.store, self.root, self.tests_files = store, root, tests
        helpers = (path for path in (root / "tests").rglob("*.py") if not path.name.startswith("test_"))
        self.helpers = _digest(sorted(helpers))
        self.lines: dict[str, dict[str, list[int]]] = {}
        self.seconds: dict[str, float] = {}
        self.red: list[str] = []

    def update(self, source: Path, run: Callable[[list[str], Recorder], bool]) -> None:
        """Read what is known and record the rest: `run` runs test files in a fork, False where that one died.

        What a test file reached is written when it ends, so an interrupted recording goes on where it was.
        """
        while stale := [self._name(path) for path in self.tests_files if not self._known(path)]:
            print(f"which test runs which line, in {len(stale)} files from {stale[0]} on", flush=True)
            recorder = Recorder(source, self._write)
            if not run(stale, recorder):
                culprit = next(name for name in stale if not self._known(self.root / name))
                print(f"the process died of {culprit}, which is left out", flush=True)
                self._write(culprit, Recorder(source, self._write))
        for path in self.tests_files:
            entry = json.loads(self._file(path).read_text())
            self.lines |= entry["lines"]
            self.seconds |= entry["seconds"]
            self.red += entry["red"]

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def _file(self, path: Path) -> Path:
        return self.store / f"{self._name(path).replace('/', '-')}.json"

    def _known(self, path: Path) -> bool:
        if not self._file(path).exists():
            return False
        entry = json.loads(self._file(path).read_text())
        same = entry["test"] == _digest([path]) and entry["helpers"] == self.helpers
        return same and all(digest == self._source(file) for file, digest in entry["files"].items())

    def _source(self, file: str) -> str:
        path = self.root / "src" / file
        return _digest([path]) if path.exists() else "gone"

    def _write(self, name: str, recorder: Recorder) -> None:
        """A test that is red without any change can notice none: it is left out."""
        path = self.root / name
        own = {test: seen for test, seen in recorder.lines.items() if _file_of(test) == name}
        lines = {test: seen for test, seen in own.items() if test not in recorder.red}
        files = {file for seen in own.values() for file in seen}
        entry = {
            "test": _digest([path]),
            "helpers": self.helpers,
            "files": {file: self._source(file) for file in sorted(files)},
            "lines": lines,
            "seconds": {test: recorder.seconds[test] for test in lines},
            "red": sorted(own.keys() - lines.keys()),
        }
        self._file(path).parent.mkdir(parents=True, exist_ok=True)
        self._file(path).write_text(json.dumps(entry))

    def tests(self, file: str, first: int, last: int) -> list[str]:
        """Tests that run one of these lines of `file` (seen from the source folder)."""
        return self._sorted(t for t, seen in self.lines.items() if any(first <= k <= last for k in seen.get(file, ())))

    def tests_of_file(self, file: str) -> list[str]:
        return self.tests(file, 0, sys.maxsize)

    def tests_in(self, files: list[str]) -> list[str]:
        """The tests of these test files."""
        return self._sorted(test for test in self.lines if _file_of(test) in files)

    def _sorted(self, tests: Iterable[str]) -> list[str]:
        return sorted(tests, key=lambda test: (self.seconds[test], test))


def _digest(paths: list[Path]) -> str:
    content = hashlib.sha256()
    for path in paths:
        content.update(path.read_bytes())
    return content.hexdigest()[:16]
