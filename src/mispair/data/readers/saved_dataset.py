"""Data sets written by `datasets.save_to_disk`: Arrow files beside dataset_info.json, a subfolder for each split.

Read with pyarrow alone; the files are mapped, so pictures stay on disk.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from mispair.data.config import DataConfig
from mispair.data.files.columns import Columns
from mispair.data.files.picture_column import ArrowStore, ColumnPlace, arrow_batches, refuse_other_columns
from mispair.data.files.picture_folder import FolderStore
from mispair.data.files.table_rows import WHAT, TableRows, Value
from mispair.data.readers.columns_to_pairs import pairs_of_columns
from mispair.data.readers.pair_list import PairList, usual_split
from mispair.data.readers.pair_list_reader import PairListReader
from mispair.data.readers.parquet_pairs import distinct_names, parquet_columns
from mispair.errors import InputError
from mispair.ordinary_file import read_ordinary


class SavedDataset(PairListReader):
    """A folder with state.json and .arrow files, or with dataset_dict.json and one such folder per split."""

    def recognises(self, config: DataConfig) -> bool:
        return bool(arrow_parts(Path(config.path)))

    def read(self, config: DataConfig) -> PairList:
        return _read(config)

    def columns(self, config: DataConfig) -> tuple[Columns, list[str]]:
        """Which column is what, and all columns."""
        files = [file for part in arrow_parts(Path(config.path)).values() for file in part]
        schema = next(batch.schema for file in files for batch in arrow_batches(file))
        return parquet_columns(schema, config.path, config), list(schema.names)


def arrow_parts(path: Path) -> dict[str, list[Path]]:
    """The Arrow files of each split; the one split of a plain data set is called ""."""
    if not os.path.isdir(path):
        return {}
    if os.path.isfile(path / "dataset_dict.json"):
        names = [name for name in sorted(os.listdir(path)) if os.path.isdir(path / name)]
        return {name: files for name in names if (files := _arrows(path / name))}
    return {"": files} if os.path.isfile(path / "dataset_info.json") and (files := _arrows(path)) else {}


def computed(name: str) -> bool:
    """Whether a file holds what `datasets` computed of the rows (`map`, `filter`): it leaves that beside them."""
    return os.path.basename(name).startswith("cache-")


def _arrows(folder: Path) -> list[Path]:
    there = [name for name in sorted(os.listdir(folder)) if name.endswith(".arrow") and name[0] != "."]
    return [folder / name for name in _listed(folder) or there if not computed(name)] if there else []


def _listed(folder: Path) -> list[str]:
    """The files that state.json names, in the order of the rows; none where it names no plain ones."""
    try:
        names = [file["filename"] for file in json.loads(read_ordinary(folder / "state.json"))["_data_files"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []
    plain = all(isinstance(name, str) and name == os.path.basename(name) and name.endswith(".arrow") for name in names)
    return names if plain else []


def _read(config: DataConfig) -> PairList:
    import pyarrow as pa

    root = Path(config.path)
    parts = arrow_parts(root)
    files = tuple(file for part in parts.values() for file in part)
    batches = [arrow_batches(file) for file in files]
    if not any(batches):
        raise InputError(f"{root} has no rows; expected {WHAT}, one per row")
    schema = next(batch.schema for one in batches for batch in one)
    columns = parquet_columns(schema, str(root), config)
    used = [columns.image, columns.caption, columns.split, columns.id, columns.file, columns.weights]
    names = list(dict.fromkeys(name for name in used if name is not None))
    schemas = {file: one[0].schema for file, one in zip(files, batches, strict=True) if one}
    refuse_other_columns(schemas, names, columns.picture)
    values: dict[str, list[Value]] = {name: [] for name in names}
    places: list[ColumnPlace] = []
    try:
        for number, one in enumerate(batches):
            for batch_number, batch in enumerate(one):
                for name in names:
                    values[name] += batch.column(name).to_pylist()
                places += [(number, batch_number, row) for row in range(batch.num_rows)]
    except (pa.ArrowException, KeyError, ValueError, TypeError) as error:
        raise InputError(f"{root} is not readable as Arrow ({str(error)[:80]}); save the data set again") from None
    splits = None
    if "" not in parts:
        of_file = [usual_split(name) for name, part in parts.items() for _ in part]
        splits = [of_file[file] for file, _, _ in places]
    inside: tuple[ArrowStore, list[Any], list[str]] | None = None
    if columns.picture is not None:
        store = ArrowStore(files, columns.picture, FolderStore(root, config.allow_outside))
        inside = (store, places, _picture_names(batches, columns.picture, len(places)))
    rows = TableRows(list(schema.names), values, list(range(1, len(places) + 1)))
    return pairs_of_columns(root, rows, columns, config, splits=splits, inside=inside)


def _picture_names(batches: list[list[Any]], column: str, count: int) -> list[str]:
    """What to call the pictures: by the path stored with each, where those differ; else by row."""
    import pyarrow.types as pt

    kind = next(batch.schema.field(column).type for one in batches for batch in one)
    if not pt.is_struct(kind) or kind.get_field_index("path") < 0:
        return distinct_names([], count)
    return distinct_names(
        [value for one in batches for batch in one for value in batch.column(column).field("path").to_pylist()], count
    )
