"""Parquet: only what is used is read, so only what is used can be wrong."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mispair.data import DataConfig, open_source
from mispair.data.files.parquet import is_bulky
from mispair.data.files.rows import column_names, read_rows
from mispair.errors import InputError


def damaged(path: Path) -> Path:
    """Two good columns and one whose text is not UTF-8."""
    wrong = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")]
    )
    pq.write_table(pa.table({"image_id": ["a", "b"], "caption": ["a dog", "a cat"], "note": wrong}), path)
    return path


def test_a_column_nobody_uses_is_no_reason_to_refuse(tmp_path: Path) -> None:
    source = open_source(DataConfig(path=str(damaged(tmp_path / "p.parquet"))), "all")
    assert source.captions == ["a dog", "a cat"]
    assert "not used: 'note'" in source.notes[0]


def test_a_damaged_column_that_is_used_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not readable as Parquet"):
        read_rows(damaged(tmp_path / "p.parquet"), ["note"])
    assert set(read_rows(tmp_path / "p.parquet").columns) == {"image_id", "caption"}


def test_columns_of_pictures_are_shown_when_none_is_recognised(tmp_path: Path) -> None:
    picture = {"bytes": b"", "path": "a.jpg"}
    pq.write_table(pa.table({"picture": [picture], "words": ["a dog"]}), tmp_path / "p.parquet")
    assert column_names(tmp_path / "p.parquet") == ["picture", "words"]
    with pytest.raises(InputError, match=r"'picture', 'words'.*--caption-column"):
        open_source(DataConfig(path=str(tmp_path / "p.parquet")), "all")


@pytest.mark.parametrize(
    ("kind", "bulky"),
    [
        (pa.binary(), True), (pa.large_binary(), True), (pa.binary(16), True), (pa.string(), False),
        (pa.int64(), False), (pa.list_(pa.float32()), True), (pa.large_list(pa.float32()), True),
        (pa.list_(pa.float32(), 4), True),
        (pa.list_(pa.string()), False), (pa.large_list(pa.large_string()), False), (pa.list_(pa.string(), 2), False),
        (pa.struct([("bytes", pa.binary())]), True), (pa.map_(pa.string(), pa.string()), True),
    ],
)  # fmt: skip
def test_pictures_and_embeddings_are_neither_names_nor_captions(kind: pa.DataType, bulky: bool) -> None:
    assert is_bulky(kind) is bulky
