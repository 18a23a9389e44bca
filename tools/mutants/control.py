"""Is a test that noticed a change green without it? Asked when it matters, once per test.

Tests share a process, so a test is run after the very tests it ran after with the change.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tools.mutants.forked import forked
from tools.mutants.warm import Run

SCREEN = os.dup(1)  # forks write into a log


def ran(notes: Path) -> list[str]:
    """The tests that were begun, as `Run` has written them down."""
    return notes.read_text().splitlines()


class Control:
    """What is known of the tests of a collected session, run in a fork without any change."""

    def __init__(self, part: Path, log: Path) -> None:
        self.part, self.log = part, log
        self.red: set[str] = set()
        self.green: set[str] = set()

    def new_red(self, run: Run, tests: list[str]) -> bool:
        """Whether one of these tests, begun in this order, is red without any change; the last has noticed."""
        if not tests or tests[-1] in self.green:
            return False

        def work() -> int:
            self.part.write_text(json.dumps(run(tests, None, to_the_end=True)))
            return 0

        if forked(work, self.log, cpu=3600) != 0:
            sys.exit(f"the tests cannot be run in a fork; see {self.log}")
        red = set(json.loads(self.part.read_text()))
        self.part.unlink()
        for test in sorted(red):
            os.write(SCREEN, f"red in a fork without any change, so left out: {test}\n".encode())
        self.red |= red
        self.green |= set(tests) - red
        return bool(red)
