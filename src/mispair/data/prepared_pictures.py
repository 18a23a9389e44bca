"""Pictures that are decoded and prepared whenever a batch asks for them: for networks that read pixels.

Letters: I pictures, B rows taken, F numbers of a prepared picture.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mispair.counted import counted
from mispair.data.picture_store import Pictures
from mispair.data.source import Finding, Source, of_split
from mispair.errors import InputError
from mispair.pictures.decode import Broken, quiet
from mispair.progress import Tell, silent

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
                raise InputError(f"{self._which({int(wanted[place]): made})}, and could be before; bring it back")
            out[place, 0] = made.reshape(-1)
        return out[places], np.ones((len(places), 1), bool)

    def subset(self, rows: NDArray[np.int64]) -> PreparedPictures:
        """Of these rows only, in this order; nothing is read."""
        return PreparedPictures(self.pictures.subset(rows), self.prepare, self.shape, self.threads)

    def examine(self, what: str = "", tell: Tell = silent) -> tuple[str, dict[int, Broken]]:
        """Read and decode all of them once: the hash of the files that can be, and by row why the others cannot.

        `what`: as it is called to whom it is told how far this is.
        """

        def decoded_hash(data: bytes | Broken) -> bytes | Broken:
            made = self.prepare(data)
            if isinstance(made, Broken) or isinstance(data, Broken):
                return made if isinstance(made, Broken) else Broken("missing")
            return hashlib.blake2b(data, digest_size=32).digest()

        digest, broken = hashlib.blake2b(repr(self.shape).encode(), digest_size=32), {}
        for row, hashed in enumerate(self._each(np.arange(len(self)), decoded_hash)):
            if isinstance(hashed, Broken):
                broken[row] = hashed
            else:
                digest.update(hashed)
            tell(what, row + 1, len(self))
        return digest.hexdigest(), broken

    def _each(self, rows: NDArray[np.int64], work: Callable[[bytes | Broken], Any]) -> Iterator[Any]:
        with quiet(), ThreadPoolExecutor(self.threads, "mispair-decode") as pool:
            yield from pool.map(lambda row: work(self.pictures.read(row)), rows.tolist())

    def _which(self, broken: Mapping[int, Broken]) -> str:
        shown = ", ".join(f"{self.pictures.names[row]}: {why.reason}" for row, why in [*broken.items()][:_SHOWN])
        more = " ..." if len(broken) > _SHOWN else ""
        return f"{counted(len(broken), 'picture')} cannot be decoded ({shown}{more})"


def decoded(source: Source, images: PreparedPictures, path: str, tell: Tell = silent) -> Source:
    """The split without the pictures that cannot be decoded: better known now than in the middle of an epoch.

    Raises InputError where none can be.
    """
    hashed, broken = images.examine(f"decoding the pictures of {source.split} once", tell)
    source = replace(source, pictures_hash=hashed)
    if not broken:
        return source
    which = f"{path}: {of_split(source.split)}{images._which(broken)}"
    if len(broken) == len(images):
        raise InputError(f"{which}, and no other is left; say where the pictures are with --images")
    text = f"{which}; replace, or leave the pairs out with --missing skip"
    good = source.of_images(np.setdiff1d(np.arange(len(images)), [*broken]))
    return replace(
        good,
        findings=(*good.findings, Finding("broken pictures", source.split, len(broken), text, left_out=True)),
        no_picture={**good.no_picture, **{images.pictures.names[row]: why.reason for row, why in broken.items()}},
    )
