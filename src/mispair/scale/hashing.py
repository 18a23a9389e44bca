"""Draws that depend on a row number alone: whoever asks, in whatever order, gets the same."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def uniform(rows: NDArray[np.int64], salt: int) -> NDArray[np.float64]:
    """(n,) row numbers -> (n,) in [0, 1), by splitmix64; another `salt` draws anew."""
    with np.errstate(over="ignore"):
        z = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt * 0xD1B54A32D192ED03 % 2**64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return np.asarray((z >> np.uint64(11)).astype(np.float64) / 2.0**53)
