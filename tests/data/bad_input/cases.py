"""Where cases of unusable input register: how to make it, and what the sentence about it must name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

Build = Callable[[Path], list[object]]
CASES: dict[str, tuple[Build, tuple[str, ...]]] = {}


def case(*fragments: str) -> Callable[[Build], Build]:
    """Register a builder of bad input; `fragments` must be in the sentence."""

    def register(build: Build) -> Build:
        assert build.__name__ not in CASES
        CASES[build.__name__] = (build, fragments)
        return build

    return register
