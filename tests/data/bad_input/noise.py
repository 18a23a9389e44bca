"""Noise files that do not fit, and what `mispair corrupt` refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.data.bad_input.cases import CASES, case
from tests.data.samples import precomp, write_lines


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
