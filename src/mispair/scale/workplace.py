"""A folder in which the pieces of one job meet: arrays that all of them read, and what each leaves behind.

Whoever works on a piece, this process or one on another machine, reads the same files and writes one of its own, whole
or not at all; so a piece may be done twice, and pieces in any order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mispair.atomic import write_atomically
from mispair.progress import Tell

# Does every piece, by its name, of the job in a folder, wherever; then all of them are done.
Spread = Callable[[Path, list[str], str, Tell], None]
Arrays = dict[str, NDArray[Any]]


class Workplace:
    """Arrays by name in a folder that exists."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def keep(self, **arrays: NDArray[Any]) -> None:
        """Leave arrays for all pieces to come."""
        for name, array in arrays.items():
            np.save(self.path / f"{name}.npy", array, allow_pickle=False)

    def make(self, name: str, dtype: type[np.generic], shape: tuple[int, ...]) -> np.memmap[Any, Any]:
        """An array to be filled, on disk."""
        return np.lib.format.open_memmap(self.path / f"{name}.npy", "w+", dtype, shape)

    def array(self, name: str) -> NDArray[Any]:
        """One that was left, read when it is looked at."""
        opened: NDArray[Any] = np.load(self.path / f"{name}.npy", mmap_mode="r", allow_pickle=False)
        return opened

    def keep_facts(self, **facts: Any) -> None:
        """Leave numbers for all pieces to come."""
        (self.path / "facts.json").write_text(json.dumps(facts), encoding="utf-8")

    def facts(self) -> dict[str, Any]:
        read: dict[str, Any] = json.loads((self.path / "facts.json").read_text(encoding="utf-8"))
        return read

    def leave(self, step: str, piece: int, arrays: Arrays) -> None:
        """What one piece found out."""

        def write(target: Path) -> None:
            with target.open("wb") as out:
                np.savez(out, allow_pickle=False, **arrays)

        write_atomically(self._piece(step, piece), write)

    def collect(self, step: str, pieces: int) -> Iterator[Arrays]:
        """What all pieces of a step left, in their order; it is gone then."""
        for piece in range(pieces):
            path = self._piece(step, piece)
            with np.load(path, allow_pickle=False) as stored:
                yield dict(stored)
            path.unlink()

    def _piece(self, step: str, piece: int) -> Path:
        return self.path / f"{step}-{piece:06d}.npz"
