"""Lists of ids: which image each row of a feature array is, and where a table's images are in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mispair.data.files.npy import open_array
from mispair.data.files.reading import read_json, read_lines
from mispair.errors import InputError


@dataclass(frozen=True, eq=False)
class Matched:
    """Where the features of each text's image are."""

    rows: NDArray[np.int64]  # (M,) row of the features, -1 where there is none
    notes: tuple[str, ...]
    unused: int  # images of the list no text names


def read_ids(path: Path, rows: int, features: Path) -> list[str]:
    """The ids of `features`, in its order: a .txt with one per line, a JSON list, or an .npy."""
    what = f"{rows:,} ids, one per row of {features.name}"
    if path.suffix == ".npy":
        array = open_array(path, what)
        if array.ndim != 1 or array.dtype.kind not in "iuU":
            raise InputError(f"{path} is {array.dtype}{array.shape}; expected {what}, as integers or text")
        ids = [str(value) for value in array.tolist()]
    elif path.suffix == ".json":
        content = read_json(path, what)
        if not isinstance(content, list) or not all(isinstance(value, (str, int)) for value in content):
            raise InputError(f"{path} is not a list of names; expected {what}")
        ids = [str(value) for value in content]
    else:
        ids = [line.strip() for line in read_lines(path, what).lines]
    if len(ids) != rows:
        raise InputError(f"{path} has {len(ids):,} ids; expected {what}, so give the list saved with that array")
    first: dict[str, int] = {}
    for k, name in enumerate(ids):
        if first.setdefault(name, k) != k:
            raise InputError(
                f"{path}, line {k + 1:,}: id {name!r} stands in line {first[name] + 1:,} already; expected {what}"
            )
    return ids


def match_ids(images: list[str], ids: list[str], path: Path) -> Matched:
    """Look every image up; where no name is found as it stands, by file name, then without its ending."""
    for how, simplify in (("", str), ("by file name", _file_name), ("by file name without its ending", _stem)):
        known = {simplify(name): k for k, name in enumerate(ids)}
        if len(known) < len(ids):
            continue  # two of them would become one
        rows = np.array([known.get(simplify(name), -1) for name in images], np.int64)
        if (rows >= 0).any():
            note = (f"images are found in {path.name} {how}",) if how else ()
            return Matched(rows, note, len(ids) - len(np.unique(rows[rows >= 0])))
    raise InputError(
        f"{path} names none of the images of the table (first {images[0]!r}); expected the same ids in both"
    )


def _file_name(name: str) -> str:
    return name.replace("\\", "/").rsplit("/", 1)[-1]


def _stem(name: str) -> str:
    return _file_name(name).rsplit(".", 1)[0]
