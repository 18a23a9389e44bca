"""Which test reaches which line? A plugin of pytest that writes it down, and what is read back.

Kept per test file. What is known of one stays known until it, a helper beside it or a source file that it reached is
another; so a new test costs its own recording and no more.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest


class Recorder:
    """Lines of `source` that each test runs, by tracing frames of our files alone."""

    def __init__(self, source: Path) -> None:
        self.prefix = f"{source}/"
        self.lines: dict[str, dict[str, list[int]]] = {}
        self.seconds: dict[str, float] = {}
        self.red: set[str] = set()
        self._now: dict[str, set[int]] = {}

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        file = frame.f_code.co_filename
        if not file.startswith(self.prefix):
            return None
        seen = self._now.setdefault(file[len(self.prefix) :], set())

        def line(frame: FrameType, event: str, argument: Any) -> Any:
            seen.add(frame.f_lineno)
            return line

        return line(frame, event, argument)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, None]:
        self._now, began = {}, _processor_seconds()
        sys.settrace(self._call)
        try:
            yield
        finally:
            sys.settrace(None)
            self.seconds[item.nodeid] = _processor_seconds() - began
            self.lines[item.nodeid] = {file: sorted(lines) for file, lines in self._now.items()}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.red.add(report.nodeid)


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

    def update(self, source: Path, run: Callable[[list[str], Recorder], None]) -> None:
        """Read what is known and record the rest: `run` runs test files with the recorder as a plugin."""
        stale = [path for path in self.tests_files if not self._known(path)]
        if stale:
            names = [path.relative_to(self.root).as_posix() for path in stale]
            print(f"which test runs which line, in {len(stale)} files from {names[0]} on", flush=True)
            recorder = Recorder(source)
            run(names, recorder)
            for path, name in zip(stale, names, strict=True):
                self._write(path, name, recorder)
        for path in self.tests_files:
            entry = json.loads(self._file(path).read_text())
            self.lines |= entry["lines"]
            self.seconds |= entry["seconds"]
            self.red += entry["red"]

    def _file(self, path: Path) -> Path:
        return self.store / f"{path.relative_to(self.root).as_posix().replace('/', '-')}.json"

    def _known(self, path: Path) -> bool:
        if not self._file(path).exists():
            return False
        entry = json.loads(self._file(path).read_text())
        same = entry["test"] == _digest([path]) and entry["helpers"] == self.helpers
        return same and all(digest == self._source(file) for file, digest in entry["files"].items())

    def _source(self, file: str) -> str:
        path = self.root / "src" / file
        return _digest([path]) if path.exists() else "gone"

    def _write(self, path: Path, name: str, recorder: Recorder) -> None:
        """A test that is red without any change can notice none: it is left out."""
        own = {test: seen for test, seen in recorder.lines.items() if test.split("::")[0] == name}
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
        chosen = [test for test, seen in self.lines.items() if any(first <= k <= last for k in seen.get(file, ()))]
        return sorted(chosen, key=lambda test: (self.seconds[test], test))

    def tests_of_file(self, file: str) -> list[str]:
        return self.tests(file, 0, sys.maxsize)


def _digest(paths: list[Path]) -> str:
    content = hashlib.sha256()
    for path in paths:
        content.update(path.read_bytes())
    return content.hexdigest()[:16]
