"""The two sides of many pairs as vectors, read when they are asked for; a memory map is never held whole.

Letters: N pairs, I images, b rows asked for, d width.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mispair.data.features import FeatureStore
from mispair.data.source import Source
from mispair.errors import InputError

Rows = NDArray[np.int64]
Floats32 = NDArray[np.float32]


class SideVectors(Protocol):
    """Vectors of one side."""

    @property
    def name(self) -> str:
        """What to call them in a message."""

    def __len__(self) -> int:
        """How many there are."""

    def take(self, rows: Rows) -> Floats32:
        """(b, d) of the rows (b,)."""

    def stored(self, rows: Rows) -> Floats32:
        """The same as they lie on disk, where they do: what is computed on the way may differ in its last digits."""


@dataclass(frozen=True, eq=False)
class StoredSide:
    """Vectors that lie in an array, perhaps led into another space on their way."""

    name: str
    store: FeatureStore
    through: Callable[[Floats32], NDArray[Any]] | None = None

    def __post_init__(self) -> None:
        if self.store.regions != 1:
            raise InputError(
                f"{self.name} has {self.store.regions} vectors per row; expected embeddings, one per row: (rows, width)"
            )

    def __len__(self) -> int:
        return len(self.store)

    def take(self, rows: Rows) -> Floats32:
        vectors = self.stored(rows)
        return vectors if self.through is None else np.asarray(self.through(vectors), np.float32)

    def stored(self, rows: Rows) -> Floats32:
        return self.store.take(rows)[0][:, 0]


@dataclass(frozen=True, eq=False)
class PairVectors:
    """N pairs: text k is shown with image `image_of[k]`."""

    images: SideVectors  # I of them
    texts: SideVectors  # N of them
    image_of: Rows | None = None  # (N,); None: image k
    captions: Sequence[str] | None = None  # (N,)
    image_ids: Sequence[str] | None = None  # (I,)
    pair_ids: Sequence[str] | None = None  # (N,)
    made_by: str = ""  # what made the vectors, where that is known: shards of two models do not go together

    def __post_init__(self) -> None:
        if self.image_of is None and len(self.images) != len(self.texts):
            raise InputError(
                f"there are {len(self.images):,} image embeddings and {len(self.texts):,} text embeddings; expected as"
                " many, row k of one with row k of the other"
            )

    def __len__(self) -> int:
        return len(self.texts)

    @classmethod
    def of_source(cls, source: Source, names: tuple[str, str]) -> PairVectors:
        """The pairs of a source whose both sides are vectors."""
        assert source.images is not None
        assert source.text_features is not None
        sides = [
            StoredSide(name, store) for name, store in zip(names, (source.images, source.text_features), strict=True)
        ]
        single = len(source.images) == len(source.image_of_text) and bool(
            (source.image_of_text == np.arange(len(source.image_of_text))).all()
        )
        return cls(
            sides[0],
            sides[1],
            None if single else source.image_of_text,
            source.captions,
            source.image_ids,
            source.text_ids,
        )

    def image_rows(self, pairs: Rows) -> Rows:
        """The image of each pair."""
        return pairs if self.image_of is None else self.image_of[pairs]

    def image_vectors(self, pairs: Rows) -> Floats32:
        """(b, d) of the images shown with these pairs; each is read once."""
        if self.image_of is None:
            return _finite(self.images, pairs)
        distinct, place = np.unique(self.image_of[pairs], return_inverse=True)
        return np.asarray(_finite(self.images, distinct)[place])

    def text_vectors(self, pairs: Rows) -> Floats32:
        """(b, d) of the texts of these pairs."""
        return _finite(self.texts, pairs)

    def stored(self, pairs: Rows) -> bytes:
        """These pairs as they lie on disk, both sides."""
        return self.images.stored(self.image_rows(pairs)).tobytes() + self.texts.stored(pairs).tobytes()

    def pairing_key(self) -> bytes:
        """What tells this pairing from another."""
        head = f"{len(self.images)} {len(self.texts)} {self.made_by}".encode()
        body = (
            b""
            if self.image_of is None
            else hashlib.sha256(np.ascontiguousarray(self.image_of, "<i8").tobytes()).digest()
        )
        return head + body


@dataclass(frozen=True, eq=False)
class JoinedSide:
    """Several sides, one under the other."""

    parts: tuple[SideVectors, ...]
    name: str = "the parts"

    def __post_init__(self) -> None:
        object.__setattr__(self, "_starts", np.concatenate([[0], np.cumsum([len(part) for part in self.parts])]))

    _starts: Rows = field(init=False, repr=False)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def take(self, rows: Rows) -> Floats32:
        return self._of_parts(rows, lambda part, mine: part.take(mine))

    def stored(self, rows: Rows) -> Floats32:
        return self._of_parts(rows, lambda part, mine: part.stored(mine))

    def _of_parts(self, rows: Rows, ask: Callable[[SideVectors, Rows], Floats32]) -> Floats32:
        part = np.searchsorted(self._starts, rows, "right") - 1
        vectors: Floats32 | None = None
        for k in np.unique(part).tolist():
            mine = part == k
            taken = ask(self.parts[k], rows[mine] - self._starts[k])
            if vectors is None:
                vectors = np.empty((len(rows), taken.shape[1]), np.float32)
            vectors[mine] = taken
        return np.empty((0, 0), np.float32) if vectors is None else vectors


def join_pairs(parts: Sequence[PairVectors]) -> PairVectors:
    """The pairs of several data sets, one after the other; all from one model."""
    first = parts[0]
    if any(part.made_by != first.made_by for part in parts):
        raise InputError("the parts were made by different encoders; embed them with one")
    starts = np.cumsum([0, *(len(part.images) for part in parts)])
    rows = [part.image_rows(np.arange(len(part))) + start for part, start in zip(parts, starts, strict=False)]

    def listed(name: str) -> list[str] | None:
        values = [getattr(part, name) for part in parts]
        return None if any(value is None for value in values) else [text for value in values for text in value]

    single = all(part.image_of is None for part in parts)
    return PairVectors(
        JoinedSide(tuple(part.images for part in parts), "images of the parts"),
        JoinedSide(tuple(part.texts for part in parts), "texts of the parts"),
        None if single else np.concatenate(rows),
        listed("captions"),
        listed("image_ids"),
        listed("pair_ids"),
        first.made_by,
    )


def _finite(side: SideVectors, rows: Rows) -> Floats32:
    vectors = side.take(rows)
    # One sum finds out: NaN and infinity stay in it.
    if not np.isfinite(vectors.sum(dtype=np.float64)):
        wrong = np.flatnonzero(~np.isfinite(vectors).all(1))
        if len(wrong):
            raise InputError(
                f"{side.name} must be finite, but row {rows[wrong[0]]} holds NaN or infinity; encode it again"
            )
    return vectors
