"""A column of vectors is the features of the pairs, over all files; pictures without captions can be looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mispair.data.config import DataConfig
from mispair.data.inspection.check import check_data
from mispair.data.readers.parquet_pairs import read_parquet_pairs
from mispair.errors import InputError
from mispair.workflows.embed import Encoding, encode_data
from tests.data.picture_samples import picture


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


@pytest.mark.parametrize(
    "other", [{}, {"embedding": [1.0]}, {"embedding": ["a"]}, {"embedding": [["a"]]}, {"Embedding": [[1.0]]}]
)
def test_a_file_without_the_vectors_of_the_first_is_named(tmp_path: Path, other: dict[str, list[object]]) -> None:
    files = write(tmp_path, [[1, 2, 3]], [[1, 2, 3]])
    pq.write_table(pa.table({"image_id": ["x"], "caption": ["a dog"], **other}), files[1])
    with pytest.raises(InputError, match=r"1.parquet has no vectors in a column 'embedding', as 0.parquet has"):
        read_parquet_pairs(files, DataConfig(path=str(tmp_path)), None)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ([1.0], r"1.parquet: the column 'image' holds double, in 0.parquet struct<bytes: binary, path: string>"),
        ([b"x"], "1.parquet: the column 'image' holds binary, in 0.parquet struct"),
        ([{"bytes": b"x"}], "1.parquet: the column 'image' holds struct<bytes: binary>, in 0.parquet struct"),
        (None, "1.parquet lacks the column 'image' of 0.parquet"),
    ],
)
def test_a_file_whose_pictures_are_held_in_another_way_is_named(tmp_path: Path, other: Any, said: str) -> None:
    files = (tmp_path / "0.parquet", tmp_path / "1.parquet")
    pq.write_table(pa.table({"image": [{"bytes": picture(0), "path": "a.png"}], "caption": ["a dog"]}), files[0])
    pq.write_table(pa.table({"caption": ["a cat"], **({} if other is None else {"image": other})}), files[1])
    with pytest.raises(InputError, match=said):
        read_parquet_pairs(files, DataConfig(path=str(tmp_path)), None)


def _pictures(folder: Path, **more: list[object]) -> DataConfig:
    pq.write_table(pa.table({"image": [picture(k) for k in range(3)], **more}), folder / "photos.parquet")
    return DataConfig(path=str(folder / "photos.parquet"))


@pytest.mark.parametrize("more", [{}, {"label": [1, 2, 3]}, {"file_name": ["a", "b", "c"], "split": ["train"] * 3}])
def test_pictures_alone_can_be_checked_and_not_judged(tmp_path: Path, more: dict[str, list[object]]) -> None:
    config = _pictures(tmp_path, **more)
    found = check_data(config)
    assert sum(split.pictures.pictures for split in found.splits if split.pictures is not None) == 3
    said = (
        "photos.parquet holds pictures and no captions: add a column of them, or say which it is with --caption-column"
    )
    assert said in found.notes
    with pytest.raises(InputError, match="photos.parquet holds pictures and no captions: add a column"):
        encode_data(config, Encoding(texts=True))


def test_words_that_may_be_the_captions_are_asked_about(tmp_path: Path) -> None:
    config = _pictures(tmp_path, prompt=["a dog", "a cat", "a cow"])
    with pytest.raises(InputError, match="'image', 'prompt'; expected one for the caption.*--caption-column"):
        check_data(config)
