"""CSV and TSV: separators by the heading, captions of any length, quotes that never end."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from mispair.data.config import ColumnsConfig
from mispair.data.files.columns import recognise
from mispair.data.files.delimited import read_delimited, separator
from mispair.data.files.rows import read_rows
from mispair.errors import InputError
from tests.data.samples import write_lines


@pytest.mark.parametrize(
    ("file", "heading", "expected"),
    [
        ("p.csv", "image,caption", ","),
        ("p.csv", "image;caption", ";"),
        ("p.csv", "image\tcaption", "\t"),
        ("p.csv", "image;caption;note, if any", ";"),
        ("p.csv", "caption", ","),
        ("p.tsv", "image,caption", "\t"),
    ],
)
def test_separator(file: str, heading: str, expected: str) -> None:
    assert separator(Path(file), heading) == expected


def test_semicolons_with_a_byte_order_mark_and_unicode_names(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_bytes("image;caption\r\nstraße 1.jpg;ein Hund, groß\r\n".encode("utf-8-sig"))
    rows = read_rows(tmp_path / "p.csv")
    assert rows.columns == {"image": ["straße 1.jpg"], "caption": ["ein Hund, groß"]}


@pytest.mark.parametrize("quoted", [True, False])
def test_a_caption_of_a_megabyte_is_a_caption(tmp_path: Path, quoted: bool) -> None:
    before = csv.field_size_limit()
    long = "dog " * 250_000
    write_lines(tmp_path / "p.csv", ["image,caption", f'1,"{long}"' if quoted else f"1,{long}", "2,a cat"])
    rows = read_rows(tmp_path / "p.csv")
    assert rows.columns["caption"] == [long, "a cat"]
    assert csv.field_size_limit() == before, "the limit is one for the whole process"


def test_an_endless_quote_is_named_where_it_starts(tmp_path: Path) -> None:
    write_lines(tmp_path / "p.csv", ["image,caption", "0,a cat", '1,"a dog', *["dog " * 100] * 400])
    with pytest.raises(InputError, match=r"p.csv, line 3: an unclosed quote"):
        read_rows(tmp_path / "p.csv")
    assert csv.field_size_limit() == 131_072


def test_lines_that_end_with_carriage_returns_alone_are_named_as_such(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_bytes(b"image_id,caption\r1,a dog\r2,a cat\r")
    with pytest.raises(InputError, match=r"p.csv, line 1: a carriage return that ends no line.*tr '\\r' '\\n'"):
        read_delimited(tmp_path / "p.csv")


def test_a_carriage_return_before_a_column_is_to_be_taken_out(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_bytes(b"image_id,caption\r,n\n1,a dog\r,2\n")
    with pytest.raises(InputError, match=r"p.csv, line 1: a carriage return that ends no line.*tr -d '\\r' <"):
        read_delimited(tmp_path / "p.csv")


def test_many_columns_are_compared_once(tmp_path: Path) -> None:
    """Each with each, a heading of 100,000 names took minutes."""

    class Name(str):
        compared = 0

        def __eq__(self, other: object) -> bool:
            Name.compared += 1
            return str.__eq__(self, other)  # type: ignore[arg-type]

        __hash__ = str.__hash__

    header: list[str] = [Name("image_id"), Name("caption"), *(Name(f"c{k}") for k in range(2000))]
    found = recognise(header, ColumnsConfig(), "p.csv")
    assert (found.image, found.caption) == ("image_id", "caption")
    assert Name.compared < 50_000
