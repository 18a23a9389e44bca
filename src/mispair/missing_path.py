"""A path that is not there, said with the name beside it that was probably meant."""

from __future__ import annotations

import difflib
import itertools
import os
from pathlib import Path

_MOST_NAMES = 10_000  # of a folder that are compared: a sentence need not wait for millions
_LONGEST = 255  # characters of a name; no file has a longer one


def is_missing(path: str | os.PathLike[str]) -> bool:
    """Whether nothing is at the path; a link that leads nowhere is nothing."""
    return not os.path.exists(path)


def does_not_exist(path: str | os.PathLike[str]) -> str:
    """The beginning of a sentence about a missing path: that it is missing, and the nearest name that is there."""
    path = Path(path)
    if os.path.islink(path):
        return f"{path} does not exist: it is a link to {os.readlink(path)}, which is not there"
    near, first = _nearest(path), _first_missing(path)
    if first == path:
        return f"{path} does not exist" + (f" (did you mean {near}?)" if near else "")
    return f"{path} does not exist (there is no folder {first}" + (f"; did you mean {near}?)" if near else ")")


def _first_missing(path: Path) -> Path:
    """The uppermost part of the path that is missing."""
    return next((part for part in reversed(path.parents) if is_missing(part)), path)


def _nearest(path: Path) -> Path | None:
    """The path with its first missing name replaced by the most similar one beside it."""
    first = _first_missing(path)
    if len(first.name) > _LONGEST:
        return None
    try:
        with os.scandir(first.parent) as entries:
            names = [entry.name for entry in itertools.islice(entries, _MOST_NAMES)]
    except (OSError, ValueError):
        return None
    shown = {name.casefold(): name for name in sorted(names) if name[0] != "." or first.name[:1] == "."}
    near = difflib.get_close_matches(first.name.casefold(), shown, n=1, cutoff=0.75)
    if not near:
        return None
    instead = first.with_name(shown[near[0]])
    whole = instead / path.relative_to(first)
    return instead if is_missing(whole) else whole
