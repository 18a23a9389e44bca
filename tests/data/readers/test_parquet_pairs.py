"""A column of vectors is the features of the pairs, over all files, and a row without one is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mispair.data.config import DataConfig
from mispair.data.readers.parquet_pairs import read_parquet_pairs
from mispair.errors import InputError


def write(folder: Path, *parts: list[list[float] | None]) -> tuple[Path, ...]:
    files = tuple(folder / f"{k}.parquet" for k in range(len(parts)))
    for file, vectors in zip(files, parts, strict=True):
        names = [f"{file.stem}-{k}" for k in range(len(vectors))]
        column = pa.array(vectors, pa.list_(pa.float64()))
        pq.write_table(pa.table({"image_id": names, "caption": ["a dog"] * len(names), "embedding": column}), file)
    return files


def test_vectors_of_all_files_are_the_features(tmp_path: Path) -> None:
    files = write(tmp_path, [[1, 2, 3], [4, 5, 6]], [[7, 8, 9]])
    store = read_parquet_pairs(files, DataConfig(path=str(tmp_path)), None).features
    assert store is not None
    assert np.asarray(store.array).reshape(3, 3).tolist() == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]


@pytest.mark.parametrize(
    ("second", "said"), [([[7, 8]], r"lengths \[2, 3\]"), ([[], []], r"lengths \[0, 3\]"), ([None], "are missing")]
)
def test_a_vector_of_another_length_is_named(tmp_path: Path, second: list[list[float] | None], said: str) -> None:
    files = write(tmp_path, [[1, 2, 3], [4, 5, 6]], second)
    with pytest.raises(InputError, match=rf"1.parquet, row 3 and on: vectors .*{said}"):
        read_parquet_pairs(files, DataConfig(path=str(tmp_path)), None)
