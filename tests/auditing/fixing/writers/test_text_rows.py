"""Tables rewritten by hand: what changes is what the plan says, every other byte stays."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mispair.auditing.fixing.slots import Slot
from mispair.auditing.fixing.writers.text_rows import SlotsByLine, rewrite_table
from mispair.data import DataConfig
from mispair.errors import InputError

STAYS = Slot(keep=True)
GOES = Slot(keep=False)


def rewritten(path: Path, plan: SlotsByLine) -> bytes:
    out = path.with_name("out" + path.suffix)
    rewrite_table(path, DataConfig(path=str(path)), plan, out)
    return out.read_bytes()


CSV = b'id,image_id,caption\r\n1,a.jpg,"a dog, running"\r\n\r\n2,b.jpg,"two\nlines"\r\n3,c.jpg,a cat'  # lines 2, 4-5, 6


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        ({}, CSV),
        ({2: [STAYS], 5: [STAYS]}, CSV),
        ({2: [GOES]}, b'id,image_id,caption\r\n\r\n2,b.jpg,"two\nlines"\r\n3,c.jpg,a cat'),
        ({5: [GOES]}, b'id,image_id,caption\r\n1,a.jpg,"a dog, running"\r\n\r\n3,c.jpg,a cat'),
        ({6: [Slot(True, caption="a, b")]}, CSV.replace(b"a cat", b'"a, b"')),
        ({2: [Slot(True, caption="new")]}, CSV.replace(b'"a dog, running"', b"new")),
        ({6: [Slot(True, image="a.jpg")]}, CSV.replace(b"3,c.jpg", b"3,a.jpg")),
        (
            {2: [Slot(True, weight=0.25)], 6: [Slot(True, weight=1 / 3)]},
            b'id,image_id,caption,weight\r\n1,a.jpg,"a dog, running",0.25\r\n\r\n2,b.jpg,"two\nlines",1\r\n'
            b"3,c.jpg,a cat,0.333333",
        ),
        (
            {6: [Slot(True, caption="x", weight=0.5)]},
            b'id,image_id,caption,weight\r\n1,a.jpg,"a dog, running",1\r\n\r\n2,b.jpg,"two\nlines",1\r\n3,c.jpg,x,0.5',
        ),
    ],
)  # fmt: skip
def test_csv_by_hand(tmp_path: Path, plan: SlotsByLine, expected: bytes) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(CSV)
    assert rewritten(path, plan) == expected


JSONL = (
    b'\xef\xbb\xbf{"image_id":  "a", "caption": ["one", "two"], "x": 1}\n\n{"image_id": "b", "caption": "d\xc3\xb6g"}\n'
)


@pytest.mark.parametrize(
    ("plan", "line", "expected"),
    [
        ({1: [STAYS, GOES]}, 0, {"image_id": "a", "caption": ["one"], "x": 1}),
        ({1: [GOES, STAYS]}, 0, {"image_id": "a", "caption": ["two"], "x": 1}),
        ({1: [STAYS, Slot(True, caption="new")]}, 0, {"image_id": "a", "caption": ["one", "new"], "x": 1}),
        ({1: [Slot(True, image="b"), Slot(True, image="b")]}, 0, {"image_id": "b", "caption": ["one", "two"], "x": 1}),
        ({1: [Slot(True, weight=0.5), STAYS]}, 0,
         {"image_id": "a", "caption": ["one", "two"], "x": 1, "weight": [0.5, 1.0]}),
        ({1: [GOES, Slot(True, weight=0.5)]}, 0, {"image_id": "a", "caption": ["two"], "x": 1, "weight": [0.5]}),
        ({3: [Slot(True, weight=0.5)]}, 2, {"image_id": "b", "caption": "dög", "weight": 0.5}),
        ({3: [Slot(True, weight=0.5)]}, 0, {"image_id": "a", "caption": ["one", "two"], "x": 1, "weight": [1.0, 1.0]}),
    ],
)  # fmt: skip
def test_jsonl_by_hand(tmp_path: Path, plan: SlotsByLine, line: int, expected: object) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(JSONL)
    lines = rewritten(path, plan).split(b"\n")
    assert json.loads(lines[line]) == expected
    assert len(lines) == 4
    if "weight" not in str(expected):
        assert lines[2 - line] == JSONL.split(b"\n")[2 - line]


def test_jsonl_rows_leave_and_stay(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(JSONL)
    first, empty, last, _ = JSONL.split(b"\n")
    assert rewritten(path, {3: [STAYS]}) == JSONL
    assert rewritten(path, {3: [GOES]}) == first + b"\n" + empty + b"\n"
    assert rewritten(path, {1: [GOES, GOES]}) == empty + b"\n" + last + b"\n"


@pytest.mark.parametrize(
    ("slots"),
    [
        [Slot(True, image="b"), STAYS],  # one caption of a row with another image than the other
        [Slot(True, image="b"), Slot(True, image="c")],
        [Slot(True, image="b"), GOES],
    ],
)
def test_a_row_with_several_captions_shows_one_image(tmp_path: Path, slots: list[Slot]) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(JSONL)
    with pytest.raises(InputError, match="cannot show several images"):
        rewritten(path, {1: slots})


def test_parquet_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = pa.table(
        {"n": [1, 2, 3], "image_id": ["a", "b", "c"], "caption": pa.array(["x", "y", "z"], pa.large_string())}
    )
    pq.write_table(table, path)
    rewritten(path, {1: [GOES], 3: [Slot(True, caption="new", image="a", weight=0.25)]})
    found = pq.read_table(tmp_path / "out.parquet")
    assert found.to_pydict() == {"n": [2, 3], "image_id": ["b", "a"], "caption": ["y", "new"], "weight": [1.0, 0.25]}
    assert found.schema.field("caption").type == pa.large_string()
    rewritten(path, {2: [Slot(True, caption="w")]})
    assert pq.read_table(tmp_path / "out.parquet").to_pydict() == {**table.to_pydict(), "caption": ["x", "w", "z"]}


def test_a_column_of_weights_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("image_id,caption,weight\na,b,1\n")
    with pytest.raises(InputError, match="has a column 'weight' already"):
        rewritten(path, {2: [Slot(True, weight=0.5)]})
    assert rewritten(path, {2: [Slot(True, caption="c")]}) == b"image_id,caption,weight\na,c,1\n"


def test_a_caption_longer_than_pythons_reader_takes_stays(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"image_id,caption\na," + b"word " * 40_000 + b"\nb,gone\nc,new\n")
    assert rewritten(path, {3: [GOES]}) == path.read_bytes().replace(b"b,gone\n", b"")


def test_lines_of_json_in_latin_1(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    first, second = '{"image_id": "a", "caption": "caf\u00e9"}\n', '{"image_id": "b", "caption": "Stra\u00dfe"}\n'
    path.write_bytes((first + second).encode("latin-1"))
    assert rewritten(path, {1: [GOES]}) == second.encode("latin-1")
    lines = rewritten(path, {1: [Slot(True, caption="Stra\u00dfe \u732b")], 2: [STAYS]}).split(b"\n")
    assert json.loads(lines[0]) == {"image_id": "a", "caption": "Stra\u00dfe \u732b"}
    assert lines[1] + b"\n" == second.encode("latin-1")


def test_a_caption_of_a_megabyte_is_written_as_it_was_read(tmp_path: Path) -> None:
    long = b"dog " * 250_000
    path = tmp_path / "t.csv"
    path.write_bytes(b'image_id,caption\na.jpg,"' + long + b'"\nb.jpg,a cat\n')
    assert rewritten(path, {3: [GOES]}) == b'image_id,caption\na.jpg,"' + long + b'"\n'
    assert csv.field_size_limit() == 131_072
