"""Pictures that are decoded and prepared whenever a batch asks for them: for networks that read pixels.

Letters: I pictures, B rows taken, F numbers of a prepared picture.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mispair.counted import counted
from mispair.data.picture_store import Pictures
from mispair.errors import InputError
from mispair.pictures.decode import Broken, quiet

Prepare = Callable[[bytes | Broken], NDArray[np.float32] | Broken]
_SHOWN = 2  # broken pictures that are named


@dataclass(frozen=True, eq=False)
class PreparedPictures:
    """Rows of prepared pictures, as `FeatureStore` has rows of features: one part of F numbers each."""

    pictures: Pictures
    prepare: Prepare
    shape: tuple[int, ...]  # of one prepared picture; its numbers lie flat
    threads: int = field(default_factory=lambda: min(8, os.cpu_count() or 1))
    lengths: None = None
    path: None = None

    def __len__(self) -> int:
        return len(self.pictures)

    @property
    def regions(self) -> int:
        return 1

    @property
    def width(self) -> int:
        return math.prod(self.shape)

    def take(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """rows (B,) -> (B, 1, F) float32 and their mask, all real. A picture asked for twice is decoded once."""
        wanted, places = np.unique(np.asarray(rows, np.int64), return_inverse=True)
        out = np.empty((len(wanted), 1, self.width), np.float32)
        for place, made in enumerate(self._each(wanted, self.prepare)):
            if isinstance(made, Broken):
                raise InputError(self._sentence([(int(wanted[place]), made)]))
            out[place, 0] = made.reshape(-1)
        return out[places], np.ones((len(places), 1), bool)

    def subset(self, rows: NDArray[np.int64]) -> PreparedPictures:
        """Of these rows only, in this order; nothing is read."""
        return PreparedPictures(self.pictures.subset(rows), self.prepare, self.shape, self.threads)

    def examine(self) -> str:
        """Read and decode all of them once; the hash of their files.

        Raises InputError where one cannot be decoded: better now than in the middle of an epoch.
        """

        def decoded_hash(data: bytes | Broken) -> bytes | Broken:
            made = self.prepare(data)
            if isinstance(made, Broken) or isinstance(data, Broken):
                return made if isinstance(made, Broken) else Broken("missing")
            return hashlib.blake2b(data, digest_size=32).digest()

        digest, broken = hashlib.blake2b(repr(self.shape).encode(), digest_size=32), []
        for row, hashed in enumerate(self._each(np.arange(len(self)), decoded_hash)):
            if isinstance(hashed, Broken):
                broken.append((row, hashed))
            else:
                digest.update(hashed)
        if broken:
            raise InputError(self._sentence(broken))
        return digest.hexdigest()

    def _each(self, rows: NDArray[np.int64], work: Callable[[bytes | Broken], Any]) -> Iterator[Any]:
        with quiet(), ThreadPoolExecutor(self.threads, "mispair-decode") as pool:
            yield from pool.map(lambda row: work(self.pictures.read(row)), rows.tolist())

    def _sentence(self, broken: list[tuple[int, Broken]]) -> str:
        shown = ", ".join(f"{self.pictures.names[row]}: {why.reason}" for row, why in broken[:_SHOWN])
        more = " ..." if len(broken) > _SHOWN else ""
        return f"{counted(len(broken), 'picture')} cannot be decoded ({shown}{more}); replace, or leave the pairs out"
