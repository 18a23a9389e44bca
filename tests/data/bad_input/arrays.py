"""Arrays of features that cannot be used."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.data.bad_input.cases import CASES
from tests.data.samples import features, precomp


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
