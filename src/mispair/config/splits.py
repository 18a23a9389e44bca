"""What the last epoch of a run thought of its pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq


def last_split(folder: Path) -> dict[str, np.ndarray[Any, Any]] | None:
    """Columns of the last epoch's split: signal, posterior, mismatched; None when the method makes none."""
    files = sorted((folder / "split.parquet").glob("epoch-*.parquet"))
    if not files:
        return None
    table = pq.read_table(files[-1])
    return {name: table[name].to_numpy() for name in ("signal", "posterior", "mismatched")}
