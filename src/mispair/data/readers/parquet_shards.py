"""A folder of Parquet files with the same columns, as Hugging Face stores them: data/train-00000-of-00002.parquet."""

from __future__ import annotations

import os
from pathlib import Path

from mispair.data.config import DataConfig
from mispair.data.files.columns import Columns
from mispair.data.files.parquet import parquet_schema
from mispair.data.files.tar_names import list_tars
from mispair.data.readers.pair_list import PairList
from mispair.data.readers.pair_list_reader import PairListReader
from mispair.data.readers.parquet_pairs import parquet_columns, read_parquet_pairs
from mispair.data.readers.split_names import splits_in_names


class ParquetShards(PairListReader):
    """Several .parquet files in a folder, or in its subfolder data; their names may say the split."""

    def recognises(self, config: DataConfig) -> bool:
        return bool(parquet_files(config))

    def read(self, config: DataConfig) -> PairList:
        return _read(config)

    def columns(self, config: DataConfig) -> tuple[Columns, list[str]]:
        """Which column is what, and all columns."""
        schema = parquet_schema(parquet_files(config)[0])
        return parquet_columns(schema, config.path, config), list(schema.names)


def parquet_files(config: DataConfig) -> tuple[Path, ...]:
    """The files, in the order in which they are read."""
    folder = Path(config.path)
    for home in (folder, folder / "data"):
        if os.path.isdir(home):
            names = [name for name in sorted(os.listdir(home)) if name.lower().endswith(".parquet") and name[0] != "."]
            beside = all(os.path.isdir(home / name[: -len(".parquet")]) for name in names)  # img2dataset's, as files
            if len(names) > 1 and not beside and not list_tars(home):
                return tuple(home / name for name in names)
    return ()


def _read(config: DataConfig) -> PairList:
    files = parquet_files(config)
    return read_parquet_pairs(files, config, splits_in_names([file.name for file in files]))
