"""Tables, Parquet files, lists of ids and pairs of sides that cannot be used."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.data.bad_input.cases import CASES, case
from tests.data.samples import features, precomp, table, write_lines


def table_case(name: str, file: str, lines: list[str], *fragments: str, options: tuple[object, ...] = ()) -> None:
    def build(folder: Path) -> list[object]:
        write_lines(folder / file, lines)
        np.save(folder / "images.npy", features(2))
        return ["check", folder / file, *(folder / "images.npy" if o == "IMAGES" else o for o in options)]

    CASES[name] = (build, (file, *fragments))


table_case("csv_unknown_columns", "p.csv", ["alpha,beta", "1,2"], "'alpha', 'beta'", "caption", "--caption-column")
table_case("csv_no_image_column", "p.csv", ["caption,beta", "a dog,2"], "image", "--image-column")
table_case("csv_two_captions", "p.csv", ["image_id,caption,title", "1,a,b"], "'caption', 'title'", "--caption-column")
table_case("csv_two_equal_headings", "p.csv", ["image_id,caption,caption", "1,a,b"], "two columns called 'caption'")
table_case(
    "csv_named_column_missing", "p.csv", ["image_id,caption", "1,a"], "'words'", options=("--caption-column", "words")
)
table_case("csv_short_row", "p.csv", ["image_id,caption", "1,a", "2"], "line 3", "1 columns", "expected 2")
table_case("csv_long_row", "p.csv", ["image_id,caption", "1,a, b"], "line 2", "3 columns", "quote")
table_case("csv_heading_only", "p.csv", ["image_id,caption"], "no rows")
table_case("csv_empty", "p.csv", [], "no rows")
table_case("csv_image_blank", "p.csv", ["image_id,caption", ",a dog"], "line 2", "'image_id' holds nothing")
table_case("csv_endless_quote", "p.csv", ["image_id,caption", '1,"a', *["dog " * 100] * 400], "unclosed quote")
table_case("tsv_commas", "p.tsv", ["image_id,caption", "1,a"], "'image_id,caption'")
table_case("jsonl_not_json", "p.jsonl", ['{"image": "a", "caption": "b"}', "{oops"], "line 2", "not JSON")
table_case("jsonl_a_list", "p.jsonl", ["[1, 2]"], "line 1", "list", "object")
table_case("jsonl_caption_a_number", "p.jsonl", ['{"image": "a", "caption": 3}'], "line 1", "holds a number", "text")
table_case(
    "jsonl_image_missing", "p.jsonl", ['{"image": "a", "caption": "b"}', '{"caption": "c"}'], "line 2", "'image'"
)
table_case(
    "jsonl_half_a_character", "p.jsonl", ['{"image": "a", "caption": "\\ud800"}'], "line 1", "half of a character"
)
table_case("jsonl_too_deep", "p.jsonl", ["[" * 100_000], "line 1")
table_case(
    "features_of_other_count",
    "p.csv",
    ["image_id,caption", "1,a"],
    "2 rows",
    "expected 1",
    "--ids",
    options=("--features", "IMAGES"),
)
table_case("second_of_other_count", "p.csv", ["image_id,caption", "1,a"], "expected 1", options=("IMAGES",))


@case("p.parquet", "not readable as Parquet")
def parquet_is_text(folder: Path) -> list[object]:
    write_lines(folder / "p.parquet", ["hello"])
    return ["check", folder / "p.parquet"]


@case("p.parquet", "not readable as Parquet")
def parquet_truncated(folder: Path) -> list[object]:
    pq.write_table(pa.table({"image_id": ["a"], "caption": ["b"]}), folder / "p.parquet")
    (folder / "p.parquet").write_bytes((folder / "p.parquet").read_bytes()[:-30])
    return ["check", folder / "p.parquet"]


@case("p.parquet", "no rows")
def parquet_without_rows(folder: Path) -> list[object]:
    pq.write_table(
        pa.table({"image_id": pa.array([], pa.string()), "caption": pa.array([], pa.string())}), folder / "p.parquet"
    )
    return ["check", folder / "p.parquet"]


@case("ids.txt", "1 ids", "2 ids")
def ids_of_other_count(folder: Path) -> list[object]:
    np.save(folder / "images.npy", features(2))
    write_lines(folder / "ids.txt", ["im0"])
    return ["check", table(folder, 2), "--features", folder / "images.npy", "--ids", folder / "ids.txt"]


@case("ids.txt", "line 2", "'im0'")
def ids_twice(folder: Path) -> list[object]:
    np.save(folder / "images.npy", features(2))
    write_lines(folder / "ids.txt", ["im0", "im0"])
    return ["check", table(folder, 2), "--features", folder / "images.npy", "--ids", folder / "ids.txt"]


@case("ids.txt", "none of the images", "'im0'")
def ids_of_other_data(folder: Path) -> list[object]:
    np.save(folder / "images.npy", features(2))
    write_lines(folder / "ids.txt", ["x", "y"])
    return ["check", table(folder, 2), "--features", folder / "images.npy", "--ids", folder / "ids.txt"]


@case("ids.json", "list of names")
def ids_not_a_list(folder: Path) -> list[object]:
    np.save(folder / "images.npy", features(2))
    (folder / "ids.json").write_text('{"a": 1}')
    return ["check", table(folder, 2), "--features", folder / "images.npy", "--ids", folder / "ids.json"]


@case("a.npy", "second .npy")
def one_side_only(folder: Path) -> list[object]:
    np.save(folder / "a.npy", features(4))
    return ["check", folder / "a.npy"]


@case("b.npy", "5 rows", "4 rows")
def sides_do_not_divide(folder: Path) -> list[object]:
    np.save(folder / "a.npy", features(4))
    np.save(folder / "b.npy", features(5))
    return ["check", folder / "a.npy", folder / "b.npy"]


@case("--sides", "two sides")
def three_sides(folder: Path) -> list[object]:
    return ["check", precomp(folder), "--sides", "a,b,c"]


@case("two different names")
def equal_sides(folder: Path) -> list[object]:
    return ["check", precomp(folder), "--sides", "a,a"]
