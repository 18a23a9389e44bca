"""Paths, folders, captions and lengths that cannot be used."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from tests.data.bad_input.cases import case
from tests.data.samples import captions, precomp, write_lines


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


@case("pairs.csv.gz", "is compressed", "gunzip")
def table_compressed(folder: Path) -> list[object]:
    (folder / "pairs.csv.gz").write_bytes(b"\x1f\x8b")
    return ["check", folder / "pairs.csv.gz"]


@case("pairs.xlsx", "spreadsheet", "save it as .csv")
def spreadsheet(folder: Path) -> list[object]:
    (folder / "pairs.xlsx").write_bytes(b"PK\x03\x04")
    return ["check", folder / "pairs.xlsx"]


@case("vectors.npz", "archive of 'arr_0'", "numpy.save")
def archive_of_arrays_as_data(folder: Path) -> list[object]:
    np.savez(folder / "vectors.npz", np.zeros((30, 4)))
    return ["audit", "--embeddings", folder / "vectors.npz", folder / "vectors.npz", "-o", folder / "audit"]


@case("'a.jpg', 'a dog'", "put a line with their names first")
def table_without_names_of_columns(folder: Path) -> list[object]:
    write_lines(folder / "pairs.csv", [f"{name}.jpg,a dog" for name in "abc"])
    return ["check", folder / "pairs.csv"]


@case("needs at least 20, got 1")
def audit_of_one_pair(folder: Path) -> list[object]:
    for name in ("i.npy", "t.npy"):
        np.save(folder / name, np.ones((1, 4)))
    return ["audit", "--embeddings", folder / "i.npy", folder / "t.npy", "-o", folder / "audit"]


@case("captions.txt", "rename it to what it is")
def table_called_txt(folder: Path) -> list[object]:
    return ["check", write_lines(folder / "captions.txt", ["image,caption", "a.jpg,a dog"])]


@case("pairs.json", "a list of records", "jq -c '.[]' pairs.json > pairs.jsonl")
def records_in_a_list(folder: Path) -> list[object]:
    return ["check", write_lines(folder / "pairs.json", ['[{"image": "a.jpg", "caption": "a dog"}]'])]


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
