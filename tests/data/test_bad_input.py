"""Every unusable input: one sentence that names the place and the remedy, exit code 2, nothing written."""

from __future__ import annotations

import json
import os
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.data.samples import captions, features, listing, precomp, run, table, write_lines

Build = Callable[[Path], list[object]]
CASES: dict[str, tuple[Build, tuple[str, ...]]] = {}


def case(*fragments: str) -> Callable[[Build], Build]:
    """Register a builder of bad input; `fragments` must be in the sentence."""

    def register(build: Build) -> Build:
        assert build.__name__ not in CASES
        CASES[build.__name__] = (build, fragments)
        return build

    return register


def array_case(name: str, content: Callable[[], bytes], *fragments: str) -> None:
    """The train array of a good folder replaced by other bytes."""

    def build(folder: Path) -> list[object]:
        precomp(folder)
        (folder / "train_ims.npy").write_bytes(content())
        return ["check", folder]

    CASES[name] = (build, ("train_ims.npy", *fragments))


def npy(array: np.ndarray, pickled: bool = False) -> bytes:
    with tempfile.TemporaryFile() as stream:
        np.save(stream, array, allow_pickle=pickled)
        stream.seek(0)
        return stream.read()


def header(text: bytes, version: int = 1, body: bytes = b"\0" * 336) -> bytes:
    size = len(text).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + size + text + body


GOOD = npy(features(7))
array_case("npy_truncated_in_a_row", lambda: GOOD[:-40], "truncated", "row 6 of 7")
array_case("npy_truncated_to_half", lambda: GOOD[: len(GOOD) // 2], "truncated")
array_case("npy_header_only", lambda: GOOD[:128], "truncated", "row 0 of 7")
array_case("npy_stops_in_header", lambda: GOOD[:40], "stops inside its header")
array_case("npy_stops_in_magic", lambda: GOOD[:9], "stops inside its header")
array_case("npy_empty_file", lambda: b"", "0 bytes")
array_case("npy_is_text", lambda: b"hello, this is no array\n", "does not start like a .npy")
array_case("npy_is_zip", lambda: b"PK\x03\x04" + b"\0" * 80, "zip")
array_case("npy_is_pickle", lambda: pickle.dumps([1, 2]), "pickle")
array_case("npy_is_lfs_pointer", lambda: b"version https://git-lfs.github.com/spec/v1\n", "Git LFS")
array_case("npy_too_long", lambda: GOOD + b"more", "longer")
array_case("npy_version_9", lambda: b"\x93NUMPY\x09\0" + GOOD[8:], "version 9")
array_case("npy_header_not_python", lambda: header(b"{'descr': <f4"), "damaged header")
array_case("npy_header_runs_code", lambda: header(b"__import__('os').system('true')"), "damaged header")
array_case("npy_header_a_list", lambda: header(b"[1, 2, 3]"), "damaged header")
array_case("npy_header_lacks_shape", lambda: header(b"{'descr': '<f4', 'fortran_order': False}"), "damaged header")
array_case(
    "npy_header_negative_shape",
    lambda: header(b"{'descr': '<f4', 'fortran_order': False, 'shape': (-7, 3, 4)}"),
    "damaged header",
)
array_case(
    "npy_header_unknown_type",
    lambda: header(b"{'descr': '<q9', 'fortran_order': False, 'shape': (7, 3, 4)}"),
    "damaged header",
)
array_case(
    "npy_header_enormous", lambda: header(b"x", version=2)[:8] + b"\xff\xff\xff\x7f" + b"x" * 50, "damaged header"
)
array_case("npy_objects", lambda: npy(np.array([{"a": 1}, None], object), pickled=True), "never unpickled")
array_case("npy_records", lambda: npy(np.zeros(7, [("a", "f4"), ("b", "i4")])), "several fields")
array_case("npy_column_order", lambda: npy(np.asfortranarray(features(7))), "column by column", "ascontiguousarray")
array_case("npy_rank_1", lambda: npy(np.ones(7, "f4")), "1 axes")
array_case("npy_rank_0", lambda: npy(np.float32(3)), "0 axes")
array_case("npy_rank_4", lambda: npy(np.ones((7, 1, 1, 1), "f4")), "4 axes")
array_case("npy_zero_rows", lambda: npy(np.ones((0, 3, 4), "f4")), "empty", "at least one row")
array_case("npy_zero_regions", lambda: npy(np.ones((7, 0, 4), "f4")), "empty")
array_case("npy_zero_width", lambda: npy(np.ones((7, 3, 0), "f4")), "empty")
array_case("npy_integers", lambda: npy(np.ones((7, 3, 4), "i4")), "int32", "float32")
array_case("npy_booleans", lambda: npy(np.ones((7, 3, 4), bool)), "bool")
array_case("npy_complex", lambda: npy(np.ones((7, 3, 4), "c8")), "complex64")
array_case("npy_text_values", lambda: npy(np.array([["a", "b"]] * 7)), "float32")


@case("nowhere", "does not exist")
def folder_missing(folder: Path) -> list[object]:
    return ["check", folder / "nowhere"]


@case("no data mispair knows", "train_ims.npy")
def folder_empty(folder: Path) -> list[object]:
    return ["check", folder]


@case("notes.docx", "expected a folder")
def file_of_unknown_kind(folder: Path) -> list[object]:
    (folder / "notes.docx").write_text("x")
    return ["check", folder / "notes.docx"]


@case("is not a path")
def path_with_nul(folder: Path) -> list[object]:
    return ["check", f"{folder}/a\0b.csv"]


@case("cannot be read")
def path_too_long(folder: Path) -> list[object]:
    return ["check", folder / ("x" * 400 + ".csv")]


@case("train_ims.npy", "is a directory")
def array_is_a_directory(folder: Path) -> list[object]:
    precomp(folder)
    (folder / "train_ims.npy").unlink()
    (folder / "train_ims.npy").mkdir()
    return ["check", folder]


@case("train_caps.txt", "is a directory")
def captions_are_a_directory(folder: Path) -> list[object]:
    precomp(folder)
    (folder / "train_caps.txt").unlink()
    (folder / "train_caps.txt").mkdir()
    return ["check", folder]


@case("pairs.csv", "is a directory")
def table_is_a_directory(folder: Path) -> list[object]:
    (folder / "pairs.csv").mkdir()
    return ["check", folder / "pairs.csv"]


@case("train_ims.npy", "not an ordinary file")
def array_is_a_pipe(folder: Path) -> list[object]:
    precomp(folder)
    (folder / "train_ims.npy").unlink()
    os.mkfifo(folder / "train_ims.npy")
    return ["check", folder]


@case("train_caps.txt or train_caps.tsv")
def captions_missing(folder: Path) -> list[object]:
    precomp(folder)
    (folder / "train_caps.txt").unlink()
    return ["check", folder]


@case("both train_caps.txt and train_caps.tsv")
def captions_twice(folder: Path) -> list[object]:
    precomp(folder)
    write_lines(folder / "train_caps.tsv", ["a\tb"])
    return ["check", folder]


@case("train_caps.txt", "holds no caption")
def captions_empty(folder: Path) -> list[object]:
    precomp(folder)
    (folder / "train_caps.txt").write_bytes(b"")
    return ["check", folder]


@case("train_caps.txt", "36 captions", "7 rows", "remove 1")
def captions_no_multiple(folder: Path) -> list[object]:
    precomp(folder)
    write_lines(folder / "train_caps.txt", captions(36))
    return ["check", folder]


@case("train_caps.txt", "blank line")
def captions_with_blank_tail(folder: Path) -> list[object]:
    precomp(folder)
    write_lines(folder / "train_caps.txt", [*captions(35), ""])
    return ["check", folder]


@case("train_caps.txt", "3 captions", "4 captions are missing")
def captions_fewer_than_images(folder: Path) -> list[object]:
    precomp(folder)
    write_lines(folder / "train_caps.txt", captions(3))
    return ["check", folder]


@case("train_caps.txt", "line 3", "NUL")
def captions_with_nul(folder: Path) -> list[object]:
    precomp(folder)
    (folder / "train_caps.txt").write_bytes(b"a\nb\nc\0c\n")
    return ["check", folder]


@case("train_caps.txt", "UTF-16", "iconv")
def captions_in_utf16(folder: Path) -> list[object]:
    precomp(folder)
    (folder / "train_caps.txt").write_bytes("\n".join(captions(35)).encode("utf-16"))
    return ["check", folder]


@case("train_caps.tsv", "line 2", "1 column")
def tsv_without_tab(folder: Path) -> list[object]:
    precomp(folder)
    (folder / "train_caps.txt").unlink()
    write_lines(folder / "train_caps.tsv", ["1\ta dog", "2 a dog"])
    return ["check", folder]


@case("train_caps.tsv", "heading")
def tsv_with_heading(folder: Path) -> list[object]:
    precomp(folder)
    (folder / "train_caps.txt").unlink()
    write_lines(folder / "train_caps.tsv", ["id\tcaption", *(f"{k}\tdog {k}" for k in range(7))])
    return ["check", folder]


@case("train_caps.tsv", "unclosed quote")
def tsv_with_endless_quote(folder: Path) -> list[object]:
    precomp(folder)
    (folder / "train_caps.txt").unlink()
    write_lines(folder / "train_caps.tsv", ['1\t"a dog', *(f"{k}\t{'dog ' * 40}" for k in range(1000))])
    return ["check", folder]


@case("test_ims.npy", "truncated")
def second_split_is_bad(folder: Path) -> list[object]:
    precomp(folder, splits=("train", "test"))
    path = folder / "test_ims.npy"
    path.write_bytes(path.read_bytes()[:-4])
    return ["check", folder]


@case("train_ims_lens.npy", "shape (3,)", "(7,)")
def lengths_of_wrong_count(folder: Path) -> list[object]:
    np.save(precomp(folder) / "train_ims_lens.npy", np.ones(3, int))
    return ["check", folder]


@case("train_ims_lens.npy", "row 2", "1 to 3")
def lengths_out_of_range(folder: Path) -> list[object]:
    np.save(precomp(folder) / "train_ims_lens.npy", np.array([1, 2, 4, 1, 1, 1, 1]))
    return ["check", folder]


@case("train_ims_lens.npy", "float64", "integers")
def lengths_not_integers(folder: Path) -> list[object]:
    np.save(precomp(folder) / "train_ims_lens.npy", np.ones(7))
    return ["check", folder]


def index_case(name: str, index: Callable[[], np.ndarray], *fragments: str) -> None:
    def build(folder: Path) -> list[object]:
        precomp(folder / "data")
        np.save(folder / "index.npy", index())
        return ["check", folder / "data", "--noise", folder / "index.npy"]

    CASES[name] = (build, ("index.npy", *fragments))


index_case("index_too_short", lambda: np.arange(6), "6 entries", "7 entries", "35")
index_case("index_too_long", lambda: np.arange(36) % 7, "36 entries")
index_case("index_out_of_range", lambda: np.array([0, 1, 2, 3, 4, 5, 7]), "entry 6 is 7", "0 and 6")
index_case("index_negative", lambda: np.array([0, 1, 2, -1, 4, 5, 6]), "entry 3 is -1")
index_case("index_floats", lambda: np.arange(7.0), "float64", "integers")
index_case("index_booleans", lambda: np.ones(7, bool), "bool")
index_case("index_beyond_64_bits", lambda: np.full(7, 2**63, np.uint64), "beyond 64-bit")
index_case("index_of_rank_2", lambda: np.zeros((7, 5), int), "shape (7, 5)")
index_case("index_empty", lambda: np.zeros(0, int), "empty")
index_case("index_of_captions_out_of_range", lambda: np.array([np.arange(35) // 5, np.arange(1, 36)]), "caption rows")


@case("index.npy", "does not exist")
def index_missing(folder: Path) -> list[object]:
    return ["check", precomp(folder), "--noise", folder / "index.npy"]


@case("index.npy", "does not start like")
def index_is_text(folder: Path) -> list[object]:
    write_lines(folder / "index.npy", ["0", "1"])
    return ["check", precomp(folder / "data"), "--noise", folder / "index.npy"]


@case("train split")
def index_without_train(folder: Path) -> list[object]:
    np.save(folder / "index.npy", np.arange(7))
    return ["check", precomp(folder / "data", splits=("test",)), "--noise", folder / "index.npy"]


def vocabulary_case(name: str, content: object, *fragments: str) -> None:
    def build(folder: Path) -> list[object]:
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / "vocab.json").write_text(text, encoding="utf-8")
        return ["check", precomp(folder / "data"), "--vocabulary", folder / "vocab.json"]

    CASES[name] = (build, ("vocab.json", *fragments))


WORDS = {"<pad>": 0, "<start>": 1, "<end>": 2, "<unk>": 3, "dog": 4}
vocabulary_case("vocabulary_without_unk", {"word2idx": {"<pad>": 0, "<start>": 1, "<end>": 2}}, "no <unk>")
vocabulary_case("vocabulary_other_order", {"word2idx": {**WORDS, "<pad>": 3, "<unk>": 0}}, "ids 0..3")
vocabulary_case("vocabulary_two_words_one_id", {"word2idx": {**WORDS, "cat": 4}}, "'cat'", "once")
vocabulary_case("vocabulary_gap", {"word2idx": {**WORDS, "dog": 9}}, "'dog' has id 9")
vocabulary_case("vocabulary_id_is_text", {"word2idx": {**WORDS, "dog": "4"}}, "'dog'")
vocabulary_case("vocabulary_disagrees", {"word2idx": WORDS, "idx2word": {"4": "cat"}}, "disagrees")
vocabulary_case("vocabulary_a_list", list(WORDS), "word2idx")
vocabulary_case("vocabulary_empty_table", {"word2idx": {}}, "word2idx")
vocabulary_case("vocabulary_not_json", '{"word2idx": {', "line 1", "not JSON")
vocabulary_case("vocabulary_too_deep", "[" * 100_000, "JSON")


@case("vocab.json", "does not exist")
def vocabulary_missing(folder: Path) -> list[object]:
    return ["check", precomp(folder), "--vocabulary", folder / "vocab.json"]


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
table_case("jsonl_caption_a_number", "p.jsonl", ['{"image": "a", "caption": 3}'], "line 1", "int", "text")
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


def corrupt_case(name: str, options: tuple[object, ...], *fragments: str) -> None:
    def build(folder: Path) -> list[object]:
        precomp(folder / "data")
        (folder / "there").mkdir()
        np.save(folder / "old.npy", np.arange(3))
        shown = [folder / o[1:] if isinstance(o, str) and o.startswith("@") else o for o in options]
        return ["corrupt", folder / "data", *shown]

    CASES[name] = (build, fragments)


corrupt_case("corrupt_rate_in_percent", ("--rate", 40, "-o", "@i.npy"), "--rate", "0.4")
corrupt_case("corrupt_rate_negative", ("--rate", -0.1, "-o", "@i.npy"), "--rate")
corrupt_case("corrupt_rate_nan", ("--rate", "nan", "-o", "@i.npy"), "--rate")
corrupt_case("corrupt_without_rate", ("-o", "@i.npy"), "--rate")
corrupt_case(
    "corrupt_unknown_protocol", ("--rate", 0.4, "--protocol", "word", "-o", "@i.npy"), "image or caption", "'word'"
)
corrupt_case("corrupt_shift_and_repeat", ("--rate", 0.4, "--shift", 1, "--repeat", "-o", "@i.npy"), "one of them")
corrupt_case("corrupt_shift_too_far", ("--rate", 0.4, "--shift", 35, "-o", "@i.npy"), "1 to 13")
corrupt_case("corrupt_start_beyond", ("--from", 99, "--shift", 1, "-o", "@i.npy"), "between 0 and 34")
corrupt_case("corrupt_negative_seed", ("--rate", 0.4, "--seed", -1, "-o", "@i.npy"), "seed", "-1")
corrupt_case("corrupt_into_a_folder", ("--rate", 0.4, "-o", "@there"), "there", "is a directory")
corrupt_case("corrupt_into_no_folder", ("--rate", 0.4, "-o", "@no/i.npy"), "is not a folder")
corrupt_case("corrupt_over_a_file", ("--rate", 0.4, "-o", "@old.npy"), "old.npy", "--force")
corrupt_case("corrupt_unknown_split", ("--rate", 0.4, "--split", "dev", "-o", "@i.npy"), "dev", "train")


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 60


@pytest.mark.parametrize("name", CASES)
def test_one_sentence_and_code_2(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    build, fragments = CASES[name]
    arguments = build(tmp_path)
    before = listing(tmp_path)
    ran = run(monkeypatch, capsys, *arguments)
    assert ran.code == 2, (ran.out, ran.err)
    assert ran.err.startswith("mispair: ")
    assert ran.err.count("\n") == 1, "one sentence on one line"
    assert "Traceback" not in ran.err
    assert ran.out == ""
    missing = [fragment for fragment in fragments if fragment not in ran.err]
    assert not missing, f"{missing} not in: {ran.err}"
    assert listing(tmp_path) == before, "nothing may be written"


@pytest.mark.parametrize("file", ["train_ims.npy", "train_caps.txt"])
def test_no_permission(file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Root may read everything, so the check runs as nobody."""
    with tempfile.TemporaryDirectory() as root:
        folder = precomp(Path(root) / "data")
        Path(root).chmod(0o755)
        (folder / file).chmod(0o000)
        was = os.geteuid()
        try:
            if was == 0:
                os.seteuid(65534)
            ran = run(monkeypatch, capsys, "check", folder)
        finally:
            os.seteuid(was)
        assert ran.code == 2
        assert file in ran.err
        assert "no permission" in ran.err
        assert "chmod" in ran.err
