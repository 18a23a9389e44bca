"""Writing a .npy file a block of rows at a time.

Through a file, not a memory map: a full disk is then an error that says so, and not a signal that ends the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Rows = NDArray[np.int64]


def write_blocks(path: Path, shape: tuple[int, ...], dtype: DTypeLike, blocks: Iterable[NDArray[Any]]) -> None:
    """An array of this shape and type, made of its `blocks` of rows in their order."""
    kind = np.dtype(dtype)
    header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for block in blocks:
            file.write(np.ascontiguousarray(block, kind).data)


def some_rows(take: Callable[[Rows], NDArray[Any]], rows: Rows, size: int = 1024) -> Iterable[NDArray[Any]]:
    """What `take` gives for the rows (n,), `size` of them at a time."""
    return (take(rows[start : start + size]) for start in range(0, len(rows), size))
