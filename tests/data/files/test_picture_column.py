"""Pictures in a column: the bytes of a row, or the file beside that the row names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mispair.data.files.picture_column import (
    ArrowStore,
    ParquetStore,
    arrow_batches,
    parquet_places,
    picture_columns,
)
from mispair.data.files.picture_folder import FolderStore
from mispair.errors import InputError
from mispair.pictures.decode import Broken
from tests.data.picture_samples import picture, write_pictures

ROWS = [
    {"image": {"bytes": picture(1), "path": None}},
    {"image": {"bytes": None, "path": "beside.png"}},
    {"image": {"bytes": None, "path": None}},
]


def test_a_picture_is_read_where_it_lies(tmp_path: Path) -> None:
    write_pictures(tmp_path, ["beside.png"])
    table = pa.Table.from_pylist(ROWS)
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as out, pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    places = parquet_places((tmp_path / "a.parquet",))[0]
    assert places == [(0, 0, 0), (0, 0, 1), (0, 1, 0)]
    for store in (ParquetStore, ArrowStore):
        path = tmp_path / ("a.parquet" if store is ParquetStore else "a.arrow")
        one = store((path,), "image", FolderStore(tmp_path))
        *read, nothing = [one.read(place) for place in places]
        assert read == [picture(1), picture(0)]
        assert isinstance(nothing, Broken)


def test_which_columns_hold_pictures() -> None:
    kinds = {"blob": pa.binary(), "caption": pa.string(), "Image": pa.struct({"bytes": pa.binary()}), "n": pa.int64()}
    assert picture_columns(pa.schema(kinds)) == ["Image", "blob"]


def test_texts_that_are_none_in_an_arrow_file_are_refused(tmp_path: Path) -> None:
    """What a file says of its own texts and places is looked at before it is believed."""
    text = pa.Array.from_buffers(pa.string(), 2, pa.array([b"a dog", b"\xff\xfe"], pa.binary()).buffers())
    table = pa.table({"caption": text})
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as out, pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(InputError, match="a.arrow is not readable as Arrow"):
        arrow_batches(tmp_path / "a.arrow")


def test_places_outside_an_arrow_file_are_not_read(tmp_path: Path) -> None:
    table = pa.table({"image": pa.array([b"a dog", b"and a cat"], pa.binary())})
    path = tmp_path / "a.arrow"
    with pa.OSFile(str(path), "wb") as out, pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    offsets, beyond = (np.array([0, 5, end], np.int32).tobytes() for end in (14, 1 << 30))
    content = path.read_bytes()
    assert content.count(offsets) == 1
    path.write_bytes(content.replace(offsets, beyond))
    with pytest.raises(InputError, match="a.arrow is not readable as Arrow"):
        arrow_batches(path)
