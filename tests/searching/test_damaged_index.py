"""An index that is damaged, whatever the part and the way, says so in a sentence; what a kill left is cleared."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mispair.errors import InputError
from mispair.searching.index import CENTRE, FILES, MANIFEST, METADATA, Index
from mispair.searching.write import write_index
from tests.searching.indexes import D, make, vectors

ARRAYS = [name for name, _ in FILES.values()]
FIFTH = 5


@pytest.fixture
def folder(tmp_path):
    return make(tmp_path / "index", vectors(23, 0), vectors(23, 1))


def use(folder):
    index = Index.open(folder)
    index.rows([FIFTH])
    index.metadata.where("train", suspicious=True)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", [*ARRAYS, METADATA])
def test_a_pipe_is_not_waited_for(folder, name):
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(InputError, match=f"{name} is missing or damaged; make the index again"):
        use(folder)


@pytest.mark.parametrize("name", ARRAYS)
def test_an_archive_of_arrays_is_no_array(folder, name):
    with (folder / name).open("wb") as file:
        np.savez(file, a=np.zeros(3))
    with pytest.raises(InputError, match=f"{name} is missing or damaged; make the index again"):
        use(folder)


@pytest.mark.parametrize("centre", ["archive", "words", "wide"])
def test_a_centre_that_is_none_is_refused(folder, centre):
    manifest = Index.open(folder).manifest.model_copy(update={"encoder": "basic"})
    (folder / MANIFEST).write_text(manifest.model_dump_json())
    with (folder / CENTRE).open("wb") as file:
        if centre == "archive":
            np.savez(file, a=np.zeros((2, D)))
        else:
            np.save(file, np.full((2, D), "x") if centre == "words" else np.zeros((2, D + 1), np.float32))
    with pytest.raises(InputError, match=f"{CENTRE} is .*; make the index again"):
        use(folder)


@pytest.mark.parametrize("column", ["image", "image_path", "caption", "split", "p_mismatch"])
@pytest.mark.parametrize("values", [None, [1], b"\xff", True], ids=["nothing", "lists", "bytes", "yes"])
def test_a_column_of_another_type_is_refused(folder, column, values):
    table = pq.read_table(folder / METADATA)
    if column in table.column_names:
        table = table.drop_columns([column])
    pq.write_table(table.append_column(column, pa.array([values] * len(table))), folder / METADATA)
    with pytest.raises(InputError, match=f"{METADATA} is damaged: .*{column}.*; make the index again"):
        use(folder)


@pytest.mark.parametrize("column", ["image", "image_path", "caption", "split"])
def test_a_row_without_a_value_is_refused(folder, column):
    table = pq.read_table(folder / METADATA)
    values = table[column].to_pylist()
    values[FIFTH] = None
    number = table.schema.get_field_index(column)
    pq.write_table(table.set_column(number, column, pa.array(values, table[column].type)), folder / METADATA)
    with pytest.raises(InputError, match=f"{METADATA} is damaged: .*{column}.*; make the index again"):
        use(folder)


@pytest.mark.parametrize("column", ["image_path", "caption", "split"])
def test_a_text_that_is_none_is_refused(folder, column):
    table = pq.read_table(folder / METADATA)
    values = [value.encode() for value in table[column].to_pylist()]
    values[FIFTH] = b"\xff\xfe"
    text = pa.Array.from_buffers(pa.string(), len(values), pa.array(values, pa.binary()).buffers())
    pq.write_table(table.set_column(table.schema.get_field_index(column), column, text), folder / METADATA)
    index = Index.open(folder)
    for ask in (
        lambda: index.rows([FIFTH]),
        lambda: index.metadata.distinct(column),
        lambda: index.metadata.part(0, 9),
    ):
        with pytest.raises(InputError, match=f"{METADATA} is damaged; make the index again"):
            ask()


def test_what_a_killed_write_left_is_cleared_by_the_next(folder):
    index = Index.open(folder)
    gone = 2**22 + 1  # above any process number
    left = [folder.with_name(f".index.{gone}.{ending}") for ending in ("part", "tmp")]
    for path in left:
        path.mkdir()
        (path / "half.npy").write_bytes(b"x")
    blocks = {"images": [index.vectors["images"]], "texts": [index.vectors["texts"]]}
    write_index(folder, index.manifest, blocks, pq.read_table(folder / METADATA), lambda *_: None)
    assert [path.name for path in folder.parent.iterdir()] == ["index"]
