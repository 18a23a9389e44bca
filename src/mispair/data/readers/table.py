"""Tables of pairs: CSV, TSV, JSONL or Parquet rows, with features joined by image id, or pictures named or held."""

from __future__ import annotations

import os
from pathlib import Path

from mispair.data.config import DataConfig
from mispair.data.embedded_folder import FAILED
from mispair.data.files.columns import Columns, recognise
from mispair.data.files.rows import TABLES, column_names, read_rows
from mispair.data.readers.arrays import array_splits
from mispair.data.readers.columns_to_pairs import pairs_of_columns
from mispair.data.readers.pair_list import PairList, list_splits_of, open_pair_list
from mispair.data.readers.precomp import list_splits
from mispair.data.source import Source
from mispair.progress import Progress


class Table:
    """A text table, or a folder whose only table or metadata file it is."""

    def recognises(self, config: DataConfig) -> bool:
        return Path(located(config).path).suffix.lower() in TABLES

    def splits(self, config: DataConfig) -> list[str]:
        """The names in the split column; without one, ["all"]."""
        return list_splits_of(read_table(located(config)), config)

    def open(
        self, config: DataConfig, split: str, *, features: bool = True, progress: Progress | None = None
    ) -> Source:
        config = located(config)
        return open_pair_list(read_table(config), config, split)


def located(config: DataConfig) -> DataConfig:
    """The configuration with the table's own path where `config.path` is a folder that holds one.

    A folder of pictures with a metadata file, as Hugging Face has them, is the table in it; so is one lone table.
    """
    folder = Path(config.path)
    if config.path == "scenes" or not os.path.isdir(folder) or list_splits(folder):
        return config
    for kind in TABLES:
        if os.path.isfile(folder / f"metadata{kind}"):
            return config.model_copy(update={"path": str(folder / f"metadata{kind}")})
    tables = [name for name in sorted(os.listdir(folder)) if name.lower().endswith(TABLES) and name[0] != "."]
    tables = [name for name in tables if name != FAILED]  # what embed writes beside its table
    lone = len(tables) == 1 and not array_splits(folder, config)
    return config.model_copy(update={"path": str(folder / tables[0])}) if lone else config


def table_columns(path: Path, config: DataConfig) -> Columns:
    """Which column of the table is what."""
    if path.suffix.lower() == ".parquet":
        from mispair.data.files.parquet import parquet_schema
        from mispair.data.readers.parquet_pairs import parquet_columns

        return parquet_columns(parquet_schema(path), str(path), config)
    names = column_names(path)
    return recognise(names, config.columns, str(path), config.second is None, weights=config.weights)


def read_table(config: DataConfig) -> PairList:
    """All pairs of a table file, of every split."""
    path = Path(config.path)
    if path.suffix.lower() == ".parquet":
        from mispair.data.readers.parquet_pairs import read_parquet_pairs

        return read_parquet_pairs((path,), config)
    columns = table_columns(path, config)
    return pairs_of_columns(path, read_rows(path), columns, config)
