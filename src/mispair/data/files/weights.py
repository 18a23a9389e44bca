"""Weights: how much of each pair's loss counts in training, from a column of a table or an array beside arrays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mispair.data.files.npy import open_array
from mispair.data.files.table_rows import TableRows, Value
from mispair.errors import InputError
from mispair.value_words import shorten

_WHAT = "a weight per pair, a number of at least 0"


def weights_of_column(path: Path, rows: TableRows, column: str, per_row: Sequence[int]) -> NDArray[np.float32]:
    """The weights in `column`, one per text; `per_row` says how many texts each row has.

    Raises InputError for what is no finite number of at least 0.
    """
    weights: list[float] = []
    for line, value, texts in zip(rows.lines, rows.columns[column], per_row, strict=True):
        several = value if isinstance(value, list) else [value] * texts
        if len(several) != texts:
            raise InputError(
                f"{path}, line {line}: column {column!r} holds {len(several)} weights for {texts} captions; expected"
                " one for each, or one for all"
            )
        for one in several:
            number = _number(one)
            if number is None:
                shown = "nothing" if one is None or one == "" else shorten(one, 40)
                raise InputError(f"{path}, line {line}: column {column!r} holds {shown}; expected {_WHAT}")
            weights.append(number)
    return np.array(weights, np.float32)


def read_weights(path: Path, texts: int) -> NDArray[np.float32]:
    """The weights in the .npy file `path`, (texts,). Raises InputError where they are not one such number per text."""
    array = open_array(path, _WHAT)
    if array.shape != (texts,):
        raise InputError(f"{path} has shape {array.shape}; expected ({texts},): {_WHAT}")
    if array.dtype.kind not in "fiu":
        raise InputError(f"{path} holds {array.dtype}; expected {_WHAT}")
    with np.errstate(over="ignore"):
        weights = np.asarray(array).astype(np.float32)
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        raise InputError(f"{path}, entry {wrong[0]}: {array[wrong[0]]}; expected {_WHAT}")
    return weights


def _number(value: Value) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if 0 <= number <= float(np.finfo(np.float32).max) else None
