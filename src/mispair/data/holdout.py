"""Splits for data that has none: dev and test are drawn by a hash of the image's name, so they never move."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from mispair.errors import InputError

PARTS = ("train", "dev", "test")


def held_out(names: Iterable[str], split: str, holdout: tuple[float, float], where: str) -> NDArray[np.bool_]:
    """Which of `names` belong to `split`; "all" takes everything. Adding rows moves no other row."""
    if split != "all" and split not in PARTS:
        raise InputError(f"{where} has no split '{split}'; expected one of {', '.join(PARTS)} or all")
    dev, test = holdout
    share = np.array([_share(name) for name in names])
    part = np.where(share < dev, 1, np.where(share < dev + test, 2, 0))
    chosen: NDArray[np.bool_] = np.ones(len(share), bool) if split == "all" else part == PARTS.index(split)
    if not chosen.any():
        raise InputError(
            f"{where}: no row falls into {split} with holdout {holdout}; expected more rows or larger shares"
        )
    return chosen


def _share(name: str) -> float:
    digest = hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") / 2.0**64
