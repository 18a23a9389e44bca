"""Which tars a name means: one file, all of a folder, or a pattern as webdataset users type it, {00000..00009}.tar."""

from __future__ import annotations

import glob
import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path

from mispair.errors import InputError
from mispair.missing_path import is_missing

_MOST = 100_000  # names one pattern may stand for
_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(\d{1,9})\.\.(\d{1,9})")


def list_tars(folder: Path) -> list[Path]:
    """The tar files of a folder, in order."""
    return [folder / name for name in sorted(os.listdir(folder)) if name.lower().endswith(".tar") and name[0] != "."]


def is_tar_pattern(name: str) -> bool:
    """Whether a name stands for several tars, by {00000..00009}, {a,b}, * or ?, and is not itself that of a file."""
    return name.lower().endswith(".tar") and any(mark in name for mark in "{*?[") and not os.path.lexists(name)


def names_nothing(data: str) -> bool:
    """Whether nothing is where DATA is named: it is no path, no pattern of tars and not the generated world."""
    return data != "scenes" and is_missing(data) and not is_tar_pattern(data)


def tars_named(name: str | Path) -> list[Path]:
    """The tars that `name` means, in order.

    Names in braces are taken as they stand, so one that is not there is missed; stars find what is there.

    Raises:
        InputError: a pattern that no file fits, or that stands for too many names.
    """
    text = str(name)
    if os.path.isdir(text):
        return list_tars(Path(text))
    if not is_tar_pattern(text):
        return [Path(text)]
    meant = list(itertools.islice(_without_braces(text), _MOST + 1))
    if len(meant) > _MOST:
        raise InputError(f"{text} stands for more than {_MOST:,} tars; expected fewer, so give their folder")
    found: list[str] = []
    for one in meant:
        found += sorted(glob.glob(one)) if any(mark in one for mark in "*?[") else [one]
    if not found:
        raise InputError(f"{text} fits no file; expected tars, so check the path")
    return [Path(one) for one in dict.fromkeys(found)]


def _without_braces(text: str) -> Iterator[str]:
    """Every name a pattern with braces stands for, the last group changing fastest."""
    group = _BRACES.search(text)
    if group is None:
        yield text
        return
    numbers = _RANGE.fullmatch(group[1])
    if numbers is None:
        words: Iterator[str] = iter(group[1].split(","))
    else:
        first, last = int(numbers[1]), int(numbers[2])
        width = len(numbers[1]) if numbers[1].startswith("0") else 0
        step = 1 if first <= last else -1
        words = (f"{number:0{width}d}" for number in range(first, last + step, step))
    for word in words:
        yield from _without_braces(text[: group.start()] + word + text[group.end() :])
