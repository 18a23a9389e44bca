"""Pairs of one or several Parquet files: captions, names or pictures in the rows, embeddings where there are some."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mispair.atomic import write_atomically
from mispair.data.cache_folder import cache_folder
from mispair.data.config import DataConfig
from mispair.data.features import FeatureStore, open_features
from mispair.data.files.columns import ID, IMAGE, SPLIT, Columns, recognise
from mispair.data.files.npy_blocks import write_blocks
from mispair.data.files.parquet import open_parquet, parquet_schema, read_parquet
from mispair.data.files.picture_column import ParquetStore, parquet_places, picture_columns, refuse_other_columns
from mispair.data.files.picture_folder import FolderStore
from mispair.data.files.table_rows import WHAT, TableRows, Value
from mispair.data.readers.columns_to_pairs import pairs_of_columns
from mispair.data.readers.pair_list import PairList, features_path
from mispair.errors import InputError

EMBEDDINGS = ("embedding", "image_embedding", "img_embedding", "image_emb", "img_emb", "clip_embedding", "features")


def read_parquet_pairs(paths: tuple[Path, ...], config: DataConfig, splits: list[str] | None = None) -> PairList:
    """The pairs of the files together, in their order.

    Args:
        splits: the split of each file, where its name says it.
    """
    schema = parquet_schema(paths[0])
    shown = paths[0] if len(paths) == 1 else paths[0].parent
    columns = parquet_columns(schema, str(shown), config)
    rows, per_file = _rows(paths, columns)
    inside = None
    if columns.picture is not None:
        home = FolderStore(paths[0].parent, config.allow_outside)
        places = [place for one in parquet_places(paths) for place in one]
        store = ParquetStore(paths, columns.picture, home)
        inside = (store, places, _picture_names(paths, schema, columns.picture, len(places)))
        if len(places) != len(rows.lines):
            raise InputError(f"{shown} is not readable as Parquet (columns of different lengths); write it again")
    of_row = None if splits is None else [split for split, n in zip(splits, per_file, strict=True) for _ in range(n)]
    column = None if features_path(config, shown) else _vector_column(schema)
    vectors = None if column is None else _embeddings(paths, column, len(rows.lines))
    columns = replace(columns, vectors=column)
    return pairs_of_columns(shown, rows, columns, config, splits=of_row, inside=inside, features=vectors)


def parquet_columns(schema: Any, shown: str, config: DataConfig) -> Columns:
    """Which column of a pyarrow schema is what."""
    pictures = picture_columns(schema)
    needs_caption = config.second is None and (not pictures or _may_be_captions(schema))
    return recognise(list(schema.names), config.columns, shown, needs_caption, pictures, config.weights)


def _may_be_captions(schema: Any) -> bool:
    """Whether there are words besides names and splits; pictures without any can still be looked at."""
    import pyarrow.types as pt

    def holds_words(kind: Any) -> bool:
        listed = pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind)
        one = kind.value_type if listed else kind
        return bool(pt.is_string(one) or pt.is_large_string(one))

    return any(holds_words(one.type) and one.name.lower() not in (*IMAGE, *SPLIT, *ID) for one in schema)


def _rows(paths: tuple[Path, ...], columns: Columns) -> tuple[TableRows, list[int]]:
    used = [columns.image, columns.caption, columns.split, columns.id, columns.file, columns.weights]
    names = list(dict.fromkeys(name for name in used if name is not None))
    values: dict[str, list[Value]] = {name: [] for name in names}
    header: list[str] = []
    per_file: list[int] = []
    refuse_other_columns({path: parquet_schema(path) for path in paths}, names, columns.picture)
    for path in paths:
        part = read_parquet(path, names)
        if not names:  # pictures alone
            part = TableRows(part.header, {}, list(range(1, len(parquet_places((path,))[0]) + 1)))
        header = header or part.header
        per_file.append(len(part.lines))
        for name in names:
            values[name] += part.columns[name]
    count = sum(per_file)
    if not count:
        raise InputError(f"{paths[0]} has no rows; expected {WHAT}, one per row")
    return TableRows(header, values, list(range(1, count + 1))), per_file


def _picture_names(paths: tuple[Path, ...], schema: Any, column: str, count: int) -> list[str]:
    """What to call the pictures no column names: by the path stored with each, where those differ; else by row."""
    import pyarrow.types as pt

    kind = schema.field(column).type
    if not pt.is_struct(kind) or kind.get_field_index("path") < 0:
        return distinct_names([], count)
    stored: list[Value] = []
    for path in paths:
        with open_parquet(path) as file:
            values = file.read(columns=[f"{column}.path"]).column(0).to_pylist()
            stored += [None if value is None else value["path"] for value in values]
    return distinct_names(stored, count)


def distinct_names(stored: list[Value], count: int) -> list[str]:
    """The names that stand with `count` pictures, where every one has its own; else the numbers of the rows."""
    named = [str(name) for name in stored if isinstance(name, str) and name.strip()]
    return named if len(set(named)) == count else [str(row) for row in range(count)]


def _vector_column(schema: Any) -> str | None:
    """The column that holds a vector of each image, by its usual names; None where there is none."""
    names = {field.name.lower(): field.name for field in schema if _holds_vectors(field.type)}
    return next((names[name] for name in EMBEDDINGS if name in names), None)


def _holds_vectors(kind: Any) -> bool:
    import pyarrow.types as pt

    listed = pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind)
    return bool(listed and pt.is_floating(kind.value_type))


def _embeddings(paths: tuple[Path, ...], column: str, count: int) -> FeatureStore:
    """A column of vectors as features: written to the cache once, as an array that can be mapped."""
    for path in paths:
        schema = parquet_schema(path)
        at = schema.get_field_index(column)
        if at < 0 or not _holds_vectors(schema.field(at).type):
            raise InputError(
                f"{path} has no vectors in a column {column!r}, as {paths[0].name} has; expected the same in all files"
            )
    facts = [(os.path.realpath(path), os.stat(path).st_size, os.stat(path).st_mtime_ns) for path in paths]
    key = hashlib.sha256(repr((facts, column)).encode(errors="surrogatepass")).hexdigest()[:32]
    file = cache_folder() / "columns" / f"{key}.npy"
    if not file.exists():
        _write_vectors(paths, column, count, file)
    store = open_features(file, f"the vectors in column {column!r} of {paths[0].name}")
    return FeatureStore(store.array, path=file)


def _write_vectors(paths: tuple[Path, ...], column: str, count: int, file: Path) -> None:
    def write(target: Path) -> None:
        blocks = _blocks(paths, column)
        first = next(blocks, np.empty((0, 0), "<f4"))
        write_blocks(target, (count, first.shape[1]), "<f4", chain([first], blocks))

    write_atomically(file, write, "run the command again, or set MISPAIR_CACHE to another place")


def _blocks(paths: tuple[Path, ...], column: str) -> Iterator[NDArray[np.float32]]:
    width, done = 0, 0
    for path in paths:
        with open_parquet(path) as opened:
            for batch in opened.iter_batches(batch_size=4096, columns=[column]):
                block = _block(batch.column(0), path, done, width)
                width, done = block.shape[1], done + len(block)
                yield block


def _block(vectors: Any, path: Path, done: int, width: int) -> NDArray[np.float32]:
    if vectors.null_count:
        raise InputError(f"{path}, row {done + 1:,} and on: vectors are missing; expected one in each row")
    lengths = {len(value) for value in vectors} | ({width} if width else set())
    if len(lengths) != 1 or 0 in lengths:
        raise InputError(f"{path}, row {done + 1:,} and on: vectors of lengths {sorted(lengths)}; expected one length")
    flat: NDArray[np.float32] = vectors.flatten().to_numpy(zero_copy_only=False).astype("<f4")
    return flat.reshape(len(vectors), -1)
