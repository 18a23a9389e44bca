"""Splits for data that has none: dev and test are drawn by a hash of the image's name, so they never move."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from mispair.counted import counted
from mispair.data.source import FEWEST
from mispair.errors import InputError

PARTS = ("train", "dev", "test")


def held_out(names: Iterable[str], split: str, holdout: tuple[float, float], where: str) -> NDArray[np.bool_]:
    """Which of `names` belong to `split`; "all" takes everything. Adding rows moves no other row."""
    if split != "all" and split not in PARTS:
        raise InputError(f"{where} has no split '{split}'; expected one of {', '.join(PARTS)} or all")
    dev, test = holdout
    share = image_shares(names)
    part = np.where(share < dev, 1, np.where(share < dev + test, 2, 0))
    chosen: NDArray[np.bool_] = np.ones(len(share), bool) if split == "all" else part == PARTS.index(split)
    if not chosen.any():
        raise InputError(
            f"{where}: none of {counted(len(share), 'row')} falls into {split} with data.holdout [{dev}, {test}];"
            f" expected more rows ({FEWEST} of train at least) or larger shares: --set data.holdout=[0.3,0.2]"
        )
    return chosen


def image_shares(names: Iterable[str]) -> NDArray[np.float64]:
    """A number in [0, 1) for each name, by its hash: the same name always gets the same."""
    digests = (hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=8).digest() for name in names)
    return np.array([int.from_bytes(digest, "little") / 2.0**64 for digest in digests], np.float64)
