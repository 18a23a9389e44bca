"""Pictures in a column: the bytes of a row, or the file beside that the row names."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mispair.data.files.picture_column import ArrowStore, ParquetStore, parquet_places, picture_columns
from mispair.data.files.picture_folder import FolderStore
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
