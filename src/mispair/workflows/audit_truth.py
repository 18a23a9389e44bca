"""What is known about which pairs are mismatched, beside what an audit says of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mispair.auditing.truth import who_belongs, with_truth
from mispair.auditing.verdicts import Verdicts
from mispair.data import DataConfig, PairData
from mispair.data.files.rows import read_rows
from mispair.data.readers.dispatch import open_source
from mispair.errors import InputError


def compared(verdicts: Verdicts, data: PairData, config: DataConfig | None, truth: bool | str) -> Verdicts:
    """The verdicts beside the truth: what was injected (True), or a column of the table that says it (its name)."""
    if truth is False:
        return verdicts
    table = data.table
    if isinstance(truth, str):
        assert config is not None
        mismatched = _truth_column(config, data.split, truth)
        return with_truth(verdicts, mismatched, table.image_rows, table.text_rows, None)
    refuse_no_truth(config, data, truth)
    assert table.truth is not None
    return with_truth(verdicts, table.truth.mismatched, table.image_rows, table.text_rows, who_belongs(data))


def refuse_no_truth(config: DataConfig | None, data: PairData, truth: bool | str) -> None:
    """Raise InputError where there is no such truth: before anything is judged, which may take long."""
    if isinstance(truth, str):
        assert config is not None
        _truth_column(config, data.split, truth)
    elif truth and data.table.truth is None:
        raise InputError(
            f"nobody injected mismatches into {data.name}, so there is no truth to compare with; name a column of the"
            " table that says which pairs are mismatched: --truth-column NAME"
        )


_YES = {"1", "1.0", "true", "yes", "mismatched", "wrong"}
_NO = {"0", "0.0", "false", "no", "matched", "right"}


def _truth_column(config: DataConfig, split: str, name: str) -> NDArray[np.bool_]:
    """Which pairs a column of the table calls mismatched."""
    lines = open_source(config, split).lines
    if lines is None:
        raise InputError(
            f"{config.path} is no table, so it has no column {name!r}; --truth compares with injected mismatches"
        )
    rows = read_rows(Path(config.path))
    if name not in rows.columns:
        raise InputError(f"{config.path} has no column {name!r}; its columns are {', '.join(rows.header)}")
    said = dict(zip(rows.lines, rows.columns[name], strict=True))
    mismatched = np.empty(len(lines), bool)
    for pair, line in enumerate(lines.tolist()):
        word = str(said[line]).strip().lower()
        if word not in _YES | _NO:
            raise InputError(
                f"{config.path}, line {line}: column {name!r} holds {word[:40]!r}; expected 1 or 0, true or false"
            )
        mismatched[pair] = word in _YES
    return mismatched
