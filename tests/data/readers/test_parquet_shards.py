"""Several Parquet files in a folder or its subfolder data are one table; one file, or files beside tars, are not."""

from __future__ import annotations

from pathlib import Path

from mispair.data import DataConfig
from mispair.data.readers.parquet_shards import ParquetShards, parquet_files


def found(folder: Path, *names: str) -> list[str]:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    config = DataConfig(path=str(folder))
    files = parquet_files(config)
    assert ParquetShards().recognises(config) == bool(files)
    return [file.relative_to(folder).as_posix() for file in files]


def test_several_files_are_shards(tmp_path: Path) -> None:
    assert found(tmp_path / "a", "b.parquet", "a.PARQUET", ".c.parquet", "d.txt") == ["a.PARQUET", "b.parquet"]
    shards = ["data/test-0.parquet", "data/train-0.parquet"]
    assert found(tmp_path / "b", *shards) == shards
    assert found(tmp_path / "c", "a.parquet") == []
    assert found(tmp_path / "d", "a.parquet", "b.parquet", "0.tar") == []
