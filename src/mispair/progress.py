"""Types of progress callbacks: what is being done, how much of it is done, how much there is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], None]  # done, of how many
Tell = Callable[[str, int, int], None]  # what is being done, done, of how many


def silent(what: str, done: int, total: int) -> None:
    """A `Tell` for those who do not want to know."""
