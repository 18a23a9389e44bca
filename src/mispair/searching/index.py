"""Index: the vectors of both sides of every pair, memory-mapped, and who is nearest to a query.

The folder is laid out as clip-retrieval reads it, row k of every part being pair k:

    manifest.json                  which model, how many, how wide (`Manifest`); written last
    img_emb/img_emb_0.npy          (N, D) float16 unit vectors of the images
    text_emb/text_emb_0.npy        (N, D) float16 unit vectors of the texts
    metadata/metadata_0.parquet    image_path, caption, image, split and what an audit said, one row per pair
    image.index, text.index        inverted files, from 200,000 pairs on (needs the extra `ann`)
    keys.npy                       (N, 2) hashes of what was encoded: made again, only what is new is encoded
    centre.npy                     (2, D) what was taken off the vectors of a bare encoder, and is off queries

Letters: N pairs, D width, q queries, k answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mispair.data.files.npy import open_array
from mispair.errors import InputError
from mispair.missing_path import does_not_exist, is_missing
from mispair.ordinary_file import read_ordinary
from mispair.searching.inverted import load_inverted, search_inverted
from mispair.searching.metadata import Metadata
from mispair.searching.nearest import Vectors, exact_nearest

if TYPE_CHECKING:
    from typing_extensions import Self

Side = Literal["images", "texts"]
EXACT_BELOW = 200_000  # pairs up to which every vector is compared
MANIFEST, METADATA = "manifest.json", "metadata/metadata_0.parquet"
KEYS, CENTRE = "keys.npy", "centre.npy"
FILES: dict[Side, tuple[str, str]] = {
    "images": ("img_emb/img_emb_0.npy", "image.index"),
    "texts": ("text_emb/text_emb_0.npy", "text.index"),
}
COLUMNS = {"image": pa.int64(), "image_path": pa.string(), "caption": pa.string(), "split": pa.string()}


class Manifest(BaseModel):
    """What an index is made of."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    model: str = Field(max_length=200)  # hash of the weights that made the vectors
    source: str = Field(max_length=4096)  # the run folder or the encoder they came from
    joined: tuple[str, ...] = Field(default=(), max_length=100)  # further run folders: the mean of all scores ranks
    data: str = Field(max_length=4096)  # where the pairs came from
    config: dict[str, Any] | None = None  # the whole data section; unset: the run's own
    encoder: str | None = Field(default=None, max_length=4096)  # the encoder that made the vectors, without a run
    audit: str | None = Field(default=None, max_length=200)  # which audit its p_mismatch is from
    pairs: int = Field(ge=1)
    width: int = Field(ge=1, le=1 << 20)
    kind: Literal["exact", "inverted"]
    sides: tuple[str, str] = ("image", "text")
    pictures: str | None = None  # the folder image_path is relative to
    rerank: bool = False  # whether the model scores pairs finer than these vectors do


@dataclass(frozen=True)
class Answers:
    """The k nearest of each query: scores descending (q, k) and pair numbers (q, k); -1 where there are fewer."""

    scores: NDArray[np.float32]
    rows: NDArray[np.int64]


@dataclass(frozen=True)
class Index:
    """An index folder that is open. Vectors stay on disk until they are compared."""

    folder: Path
    manifest: Manifest
    vectors: dict[Side, Vectors] = field(repr=False)
    metadata: Metadata = field(repr=False)
    image_of: NDArray[np.int64] = field(repr=False)  # (N,) which image each pair shows
    centre: NDArray[np.float32] | None = field(repr=False, default=None)  # (2, D) taken off images and texts
    inverted: dict[Side, Any] = field(repr=False, default_factory=dict)

    def __len__(self) -> int:
        return self.manifest.pairs

    @classmethod
    def open(cls, folder: Path, model: str | None = None) -> Self:
        """Open an index folder.

        Args:
            model: hash of the model that will ask; an index of another model is refused.

        Raises:
            InputError: no index there, a damaged one, or one of another model.
        """
        manifest = _manifest(folder)
        if model is not None and model != manifest.model:
            raise InputError(
                f"{folder} was made with another model than {manifest.source} holds now; make it again: mispair index"
            )
        vectors = {side: _vectors(folder / name, manifest) for side, (name, _) in FILES.items()}
        metadata = Metadata(folder / METADATA, COLUMNS)
        if len(metadata) != manifest.pairs:
            raise InputError(
                f"{folder / METADATA} has {len(metadata):,} rows for {manifest.pairs:,} pairs; index again"
            )
        inverted = {}
        if manifest.kind == "inverted":
            inverted = {side: load_inverted(folder / name, manifest.pairs, manifest.width)
                        for side, (_, name) in FILES.items()}  # fmt: skip
        centre = _centre(folder / CENTRE, manifest) if manifest.encoder is not None else None
        return cls(folder, manifest, vectors, metadata, metadata.column("image"), centre, inverted)

    def rows(self, pairs: Sequence[int] | NDArray[np.int64]) -> list[dict[str, Any]]:
        """What is known of some pairs, in their order."""
        pairs = np.asarray(pairs, np.int64)
        wanted = np.unique(pairs)
        outside = wanted[(wanted < 0) | (wanted >= len(self))]
        if len(outside):
            raise InputError(f"there is no pair {outside[0]}; pairs go from 0 to {len(self) - 1:,}")
        records = self.metadata.rows(pairs)
        return [{"pair": int(pair), **record} for pair, record in zip(pairs, records, strict=True)]

    def __repr__(self) -> str:
        about = self.manifest
        runs = " + ".join((about.source, *about.joined))
        made_by = f"run {runs}" if about.encoder is None else f"encoder {about.encoder}"
        return (
            f"Index({str(self.folder)!r}: {len(self):,} pairs, {about.width} numbers a side, {about.kind}, {made_by})"
        )

    def nearest(
        self,
        queries: Sequence[float] | NDArray[Any],
        side: Side,
        k: int = 10,
        only: NDArray[np.bool_] | None = None,
    ) -> Answers:
        """The k nearest pairs by their images or texts; an image that several pairs show is answered once.

        Args:
            queries: (q, D) vectors of the same space; they need not have unit length.
            only: (N,) which pairs may be answered (`Metadata.where`); None: all.
        """
        if side not in self.vectors:
            raise InputError(f"there is no side {side!r} of an index; it is {' or '.join(self.vectors)}")
        queries = _unit(np.atleast_2d(np.asarray(queries, np.float64)))
        if queries.ndim != 2 or queries.shape[1] != self.manifest.width:
            raise InputError(
                f"a query has {queries.shape[-1]} numbers; this index has vectors of {self.manifest.width}"
            )
        if k < 1:
            raise InputError(f"ask for at least one answer, got k={k}")
        wanted = min(len(self), k)
        while True:
            scores, rows = self._candidates(queries, side, wanted, only)
            answers = self._once(scores, rows, side, k)
            short = (answers.rows < 0).any(1)
            if wanted == len(self) or side == "texts" or (rows[short] < 0).any(1).all():
                return answers  # whatever could be found is there, or nothing is short
            wanted = min(len(self), 4 * wanted)  # images repeat: look further

    def _candidates(
        self, queries: NDArray[np.float32], side: Side, k: int, only: NDArray[np.bool_] | None
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        if side in self.inverted:
            return search_inverted(self.inverted[side], queries, k, only)
        return exact_nearest(self.vectors[side], queries, k, only)

    def _once(self, scores: NDArray[Any], rows: NDArray[Any], side: Side, k: int) -> Answers:
        if side == "texts":
            return Answers(scores[:, :k], rows[:, :k])
        answers = Answers(np.full((len(rows), k), -np.inf, np.float32), np.full((len(rows), k), -1, np.int64))
        for query in range(len(rows)):
            real = rows[query][rows[query] >= 0]
            _, first = np.unique(self.image_of[real], return_index=True)
            kept = np.sort(first)[:k]
            answers.scores[query, : len(kept)] = scores[query][kept]
            answers.rows[query, : len(kept)] = real[kept]
        return answers


def _manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    if is_missing(folder):
        raise InputError(f"{does_not_exist(folder)}; expected an index (mispair index RUN -o INDEX makes one)")
    if not path.is_file():
        raise InputError(f"{folder} is not an index: it has no {MANIFEST} (mispair index RUN -o INDEX makes one)")
    try:
        return Manifest.model_validate_json(read_ordinary(path))
    except (ValidationError, OSError):
        raise InputError(f"{path} is damaged or of another version of mispair; make the index again") from None


def _vectors(path: Path, manifest: Manifest) -> Vectors:
    vectors: Vectors = _array(path)
    if vectors.shape != (manifest.pairs, manifest.width) or vectors.dtype != np.float16:
        raise InputError(
            f"{path} holds {vectors.shape} {vectors.dtype}, not what {MANIFEST} says; make the index again"
        )
    return vectors


def _centre(path: Path, manifest: Manifest) -> NDArray[np.float32]:
    centre = _array(path)
    if centre.shape != (2, manifest.width) or centre.dtype.kind != "f" or not np.isfinite(centre).all():
        raise InputError(f"{path} is not of this index; make the index again")
    return np.array(centre)


def _array(path: Path) -> NDArray[Any]:
    try:
        return open_array(path, "vectors of an index")
    except InputError:
        raise InputError(f"{path} is missing or damaged; make the index again") from None


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float32]:
    """Vectors of unit length, whatever their size: strangers send 1e300."""
    if not np.isfinite(vectors).all():
        raise InputError("a query holds NaN or infinity; send finite numbers")
    largest = np.maximum(np.abs(vectors).max(axis=-1, keepdims=True, initial=0.0), 1e-300)
    scaled = vectors / largest
    length = np.linalg.norm(scaled, axis=-1, keepdims=True)
    return np.asarray(scaled / np.maximum(length, 1e-12), np.float32)
