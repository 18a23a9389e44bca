"""Pictures that are read one at a time: where each lies is known, none is in memory or unpacked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mispair.pictures.decode import Broken


class PictureStore(Protocol):
    """Something pictures are read from: a folder, tar files, a column of Parquet files. May be used from threads."""

    def read(self, place: Any) -> bytes | Broken:
        """The file of the picture at `place`, as it lies there; a place is what the store's own index says."""


@dataclass(frozen=True, eq=False)
class Pictures:
    """I pictures by row, as the bytes of their files."""

    store: PictureStore
    places: Sequence[Any]  # (I,)
    names: Sequence[str]  # (I,)
    again: Mapping[int, Sequence[Any]] = field(default_factory=dict)  # by row: further places under the same name

    def __len__(self) -> int:
        return len(self.places)

    @property
    def origin(self) -> PictureStore:
        """What holds those that are there, whatever is known to be missing."""
        return self.store.store if isinstance(self.store, _OrMissing) else self.store

    def read(self, row: int) -> bytes | Broken:
        """The file of picture `row`, or why it cannot be had. Nothing is decoded."""
        return self.store.read(self.places[row])

    def read_again(self, row: int) -> Iterator[bytes | Broken]:
        """What else stands under the name of picture `row`: the same picture once more, or by mistake others."""
        return (self.store.read(place) for place in self.again.get(row, ()))

    def subset(self, rows: NDArray[np.int64]) -> Pictures:
        """The pictures of these rows only, in this order; nothing is read."""
        listed: list[int] = np.asarray(rows).tolist()
        again = {row: self.again[k] for row, k in enumerate(listed) if k in self.again}
        return Pictures(self.store, [self.places[k] for k in listed], [self.names[k] for k in listed], again)

    def __iter__(self) -> Iterator[bytes | Broken]:
        return (self.read(row) for row in range(len(self)))


@dataclass(frozen=True, eq=False)
class PictureIndex:
    """Where the picture of each name lies, and which names have none."""

    store: PictureStore
    places: Mapping[str, Any]
    missing: dict[str, str] = field(default_factory=dict)  # name -> reason
    where: str = ""  # where was looked, for sentences
    again: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # name -> further places under it

    def renamed(self, name_of: Mapping[str, str]) -> PictureIndex:
        """The same pictures under other names; `name_of` maps a new name to the one known here."""
        places = {new: self.places[old] for new, old in name_of.items() if old in self.places}
        missing = {new: self.missing.get(old, "missing") for new, old in name_of.items() if old not in self.places}
        return PictureIndex(self.store, places, missing, self.where)

    def select(self, names: Sequence[str]) -> Pictures:
        """The pictures of these names, in this order; a name without one reads as broken."""
        return Pictures(
            _OrMissing(self.store),
            [self.places[name] if name in self.places else Broken(self.missing.get(name, "missing")) for name in names],
            names,
            {row: self.again[name] for row, name in enumerate(names) if name in self.again},
        )


@dataclass(frozen=True, eq=False)
class _OrMissing:
    """A store some of whose places are known to hold nothing."""

    store: PictureStore

    def read(self, place: Any) -> bytes | Broken:
        return place if isinstance(place, Broken) else self.store.read(place)
