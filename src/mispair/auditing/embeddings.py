"""Embeddings as people have them: arrays, tensors, memory maps, and columns of arrays, made into unit vectors.

Letters: n rows, d width.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mispair.data.config import DataConfig
from mispair.data.section_files import full_paths
from mispair.errors import InputError

_BLOCK = 8192  # rows converted at a time
_SHORTEST = 1e-12  # length below which torch divides by this instead
_SAME = 0.05  # of their length: vectors of one image that differ by more are of two


@dataclass(frozen=True, eq=False)
class GivenPairs:
    """Pairs whose embeddings somebody has already: row k of one side is paired with row k of the other.

    `mispair.quick_audit` says more of each; with a `table` the others may be names of its columns.
    """

    image_embeddings: Any  # (n, d)
    text_embeddings: Any  # (n, d)
    captions: Any = None  # (n,)
    image_ids: Any = None  # (n,)
    table: Any = None

    def column(self, role: str) -> Any:
        """One of the four above, looked up where it is the name of a column."""
        given = getattr(self, role)
        if not isinstance(given, str):
            return given
        if self.table is None and given.endswith(".npy"):
            raise InputError(f"{role} is the name of a file: open it with numpy.load({given!r}, mmap_mode='r')")
        if self.table is None:
            raise InputError(f"{role} is {given!r}, the name of a column: give the table it stands in too (table=)")
        return pick_column(self.table, given, role)

    def shown(self, role: str, count: int) -> list[str] | None:
        """The captions or the image ids of all `count` pairs; None where nobody gave any."""
        given = self.column(role)
        if given is None:
            return None
        values = as_texts(role, given)
        if len(values) != count:
            raise InputError(f"there are {len(values):,} {role} for {count:,} pairs; expected one for each")
        for row, text in enumerate(values):
            try:
                text.encode()
            except UnicodeEncodeError:
                raise InputError(
                    f"{role}, row {row}: half of a character (a lone surrogate); expected whole ones, such as"
                    " text.encode('utf-8', 'replace').decode()"
                ) from None
        return values


def arrays_as_data(
    first: str | os.PathLike[str], second: str | os.PathLike[str], table: DataConfig | None
) -> tuple[DataConfig, DataConfig]:
    """Two .npy files as data to open, and the data that `fix` would rewrite: the table whose rows they are, if any."""
    images, texts = os.path.abspath(first), os.path.abspath(second)
    if table is None:
        config = DataConfig(path=images, second=texts)
        return config, config
    origin = table.model_copy(update=full_paths(table.model_dump()))
    return origin.model_copy(update={"features": images, "second": texts}), origin


def unit_vectors(name: str, values: Any) -> Tensor:
    """Any (n, d) numbers as unit vectors, (n, d) float32: the only copy, made block by block.

    Args:
        name: what to call them in a message.
        values: an array, a memory map, a tensor, a frame of numbers, or a column (pandas, polars, a Hugging Face data
            set, a list) with one array in each row.

    Raises InputError where they are not one finite vector per row.
    """
    if not hasattr(values, "__len__") or getattr(values, "shape", None) == ():
        raise InputError(f"{name} must be one vector per pair, shape (n, d), got {type(values).__name__}")
    if not len(values):
        raise InputError(f"{name} holds no row; expected one vector per pair, shape (n, d)")
    rows = refuse_sparse(name, values) if isinstance(values, Tensor) else as_array(name, values)
    if rows.ndim != 2 or rows.shape[1] < 2:
        raise InputError(f"{name} must be one vector per pair, shape (n, d), got shape {tuple(rows.shape)}")
    vectors = torch.empty(rows.shape[0], rows.shape[1])
    for start in range(0, len(vectors), _BLOCK):
        part = vectors[start : start + _BLOCK]
        block = rows[start : start + _BLOCK]
        part.copy_(block.detach() if isinstance(block, Tensor) else torch.from_numpy(np.array(block, np.float32)))
        wrong = (~torch.isfinite(part).all(1)).nonzero()[:, 0]
        if len(wrong):
            row = start + int(wrong[0])
            raise InputError(f"{name} must be finite, but row {row} holds NaN or infinity; encode it again")
        part.copy_(unit_length(part))
    return vectors


def unit_length(vectors: Tensor) -> Tensor:
    """(n, d) at unit length, however long or short they are: the squares of 1e30 or 1e-30 are no float32 numbers."""
    length = vectors.norm(dim=1, keepdim=True)
    odd = ~((length > _SHORTEST) & torch.isfinite(length)) & vectors.any(1, keepdim=True)
    if bool(odd.any()):
        vectors = torch.where(odd, vectors / vectors.abs().amax(1, keepdim=True), vectors)
    return torch.nn.functional.normalize(vectors, dim=1)


def centre(vectors: Tensor, what: str) -> Tensor:
    """Unit vectors around their mean, in place: the two sides of a contrastive model lie apart, and one side alike.

    Raises InputError where all of them are the same: around their mean nothing is left but rounding.
    """
    if bool((vectors == vectors[0]).all()):
        raise InputError(f"all {len(vectors):,} {what} are the same, so nothing tells the pairs apart")
    vectors -= vectors.mean(0)
    return torch.nn.functional.normalize(vectors, dim=1, out=vectors)


def fold_by_id(vectors: Tensor, ids: Sequence[str]) -> tuple[Tensor, NDArray[np.int64], list[str]]:
    """Rows with the same id are one image: vectors of the images, the image of each row, the ids of the images.

    Raises InputError where rows of one id have different vectors.
    """
    names, image_of, first = number_images(ids)
    if len(names) == len(ids):
        return vectors, image_of, list(ids)
    images = vectors[torch.from_numpy(first)]
    for start in range(0, len(ids), _BLOCK):
        part = slice(start, start + _BLOCK)
        apart = (vectors[part] - images[torch.from_numpy(image_of[part])]).norm(dim=1)
        wrong = (apart > _SAME).nonzero()[:, 0]
        if len(wrong):
            row = start + int(wrong[0])
            raise InputError(
                f"image_ids names {ids[row]!r} in rows {first[image_of[row]]} and {row}, but their embeddings differ;"
                " expected one id per picture, so mend the ids or leave them out"
            )
    return images, image_of, names


def equal_rows(vectors: Tensor) -> list[str] | None:
    """A name for each row where no ids are given: the number of the first row equal to it; None where none repeats.

    A row that is given again for each of its captions is one image. All rows equal are left as they are, to be refused.
    """
    rows = np.ascontiguousarray(vectors.numpy())
    whole = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))[:, 0]
    _, first, group = np.unique(whole, return_index=True, return_inverse=True)
    return None if len(first) in (1, len(rows)) else [str(row) for row in first[group.reshape(-1)].tolist()]


def number_images(ids: Sequence[str]) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """Distinct ids in the order they are met, (I,); the image of each row, (n,); the first row of each image, (I,)."""
    number: dict[str, int] = {}
    image_of = np.array([number.setdefault(name, len(number)) for name in ids], np.int64)
    first = np.full(len(number), -1, np.int64)
    first[image_of[::-1]] = np.arange(len(ids))[::-1]
    return list(number), image_of, first


def pick_column(table: Any, name: str, role: str) -> Any:
    """Column `name` of a pandas or polars frame, a pyarrow table, a Hugging Face data set or a mapping of columns."""
    if hasattr(table, "collect"):  # polars' LazyFrame
        raise InputError(f"{role}: the table is a query that has not run yet; give what its collect() returns")
    columns: Any = getattr(table, "column_names", None) or getattr(table, "columns", ())
    columns = table.keys() if isinstance(table, Mapping) else columns
    names = [str(column) for column in columns]
    if name not in names:
        raise InputError(f"{role}: the table has no column {name!r}; its columns are {', '.join(names) or 'none'}")
    return table[name]


def as_texts(name: str, values: Any) -> list[str]:
    """A column of texts or numbers as texts; bytes are UTF-8."""
    if isinstance(values, Mapping) or not hasattr(values, "__iter__"):
        raise InputError(f"{name} must be one text per pair, got {type(values).__name__}")
    if hasattr(values, "to_pylist"):  # pyarrow
        values = values.to_pylist()
    return [_as_text(value) for value in (values.tolist() if isinstance(values, Tensor) else values)]


def _as_text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, Tensor):
        value = value.tolist()
    return "" if value is None else str(value)


def refuse_sparse(name: str, values: Tensor) -> Tensor:
    """The tensor as it is. Raises InputError where it is not one number after the other."""
    if values.layout != torch.strided:
        raise InputError(f"{name} is sparse; expected a dense tensor (to_dense())")
    return values


def as_array(name: str, values: Any) -> NDArray[Any]:
    """Numbers as an array without copying what is one already; rows of arrays are stacked."""
    if hasattr(values, "to_pylist"):  # pyarrow
        values = values.to_pylist()
    array = values if isinstance(values, np.ndarray) else np.asarray(_listed(values))
    if array.dtype == object and array.ndim == 1:
        try:
            array = np.stack([np.asarray(row, np.float32) for row in array.tolist()])
        except (ValueError, TypeError):
            raise InputError(
                f"{name} holds rows that are no vectors of one length; expected one embedding in each row"
            ) from None
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise InputError(f"{name} has masked values; expected all of them, so fill them or leave those pairs out")
    if array.dtype.kind not in "fiu":
        raise InputError(f"{name} holds {array.dtype}, not numbers; expected one embedding in each row")
    return array


def _listed(values: Any) -> Any:
    """Columns that numpy does not know by itself, as lists; of ragged rows, numpy shall make objects."""
    if hasattr(values, "__array__"):
        return values
    rows = list(values)
    ragged = np.empty(len(rows), object)
    ragged[:] = [row.tolist() if hasattr(row, "tolist") else row for row in rows]
    return ragged
