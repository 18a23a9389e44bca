"""What the last epoch of a run thought of its pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mispair.errors import InputError


def last_split(folder: Path) -> dict[str, np.ndarray[Any, Any]] | None:
    """Columns of the last epoch's split: signal, posterior, mismatched; None when the method makes none."""
    files = sorted((folder / "split.parquet").glob("epoch-*.parquet"))
    if not files:
        return None
    table = read_split(files[-1])
    return {name: table[name].to_numpy() for name in ("signal", "posterior", "mismatched")}


def read_split(file: Path) -> pa.Table:
    """One epoch's split as a table."""
    try:
        return pq.read_table(file)
    except (OSError, pa.ArrowException):
        raise InputError(f"{file} is damaged; delete it, or train the run again") from None
