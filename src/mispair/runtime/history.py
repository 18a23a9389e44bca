"""The split's history: one Parquet file per epoch in `split.parquet/`, one row per pair."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mispair.runtime.checkpoint import write_atomically


def write_epoch(folder: Path, epoch: int, columns: dict[str, NDArray[Any]]) -> None:
    """columns (N,) by pair id. Readers of Parquet open the folder `split.parquet` as one table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    length = len(next(iter(columns.values())))
    table = pa.table(
        {"epoch": np.full(length, epoch, np.int32), "pair_id": np.arange(length, dtype=np.int64), **columns}
    )
    write_atomically(folder / "split.parquet" / f"epoch-{epoch:04d}.parquet", lambda path: pq.write_table(table, path))
