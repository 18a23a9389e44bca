"""Per-pair values seen together with those of their group: the pairs that show one image.

Letters: N pairs, groups (N,) any integers, equal where pairs belong together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mispair.errors import InputError


def group_means(values: NDArray[np.float64], groups: NDArray[np.int64]) -> NDArray[np.float64]:
    """The mean of its group for every pair, (N,)."""
    _check(values, groups)
    _, rows, counts = np.unique(groups, return_inverse=True, return_counts=True)
    means: NDArray[np.float64] = (np.bincount(rows, values) / counts)[rows]
    return means


def group_correlation(values: NDArray[np.float64], groups: NDArray[np.int64]) -> float:
    """How well the rest of a group predicts a member: correlation of a value with the mean of the others.

    About 0 where grouped pairs have nothing in common (or nobody has company), near 1 where they stand and fall
    together.
    """
    _check(values, groups)
    _, rows, counts = np.unique(groups, return_inverse=True, return_counts=True)
    accompanied = counts[rows] > 1
    if accompanied.sum() < 3:
        return 0.0
    own, rows = values[accompanied], rows[accompanied]
    others = (np.bincount(rows, own, len(counts))[rows] - own) / (counts[rows] - 1)
    if own.std() == 0 or others.std() == 0:
        return 0.0
    return float(np.corrcoef(own, others)[0, 1])


def shrink_to_groups(values: NDArray[np.float64], groups: NDArray[np.int64]) -> NDArray[np.float64]:
    """Every value drawn towards the mean of its group, the more the better groups predict their members."""
    weight = max(group_correlation(values, groups), 0.0)
    return (1 - weight) * values + weight * group_means(values, groups)


def _check(values: NDArray[np.float64], groups: NDArray[np.int64]) -> None:
    if values.ndim != 1 or values.shape != groups.shape:
        raise InputError(f"values and groups must be alike (N,), got {values.shape} and {groups.shape}")
