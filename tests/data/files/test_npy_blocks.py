"""Arrays written block by block are those numpy would have written."""

from __future__ import annotations

import io

import numpy as np
import pytest

from mispair.data.files.npy_blocks import some_rows, write_blocks


@pytest.mark.parametrize("dtype", ["<f2", "<f4", "<f8", "<i8", "|b1"])
@pytest.mark.parametrize("shape", [(0,), (7,), (7, 3), (7, 3, 2), (0, 3)])
def test_the_file_is_that_of_numpy(tmp_path, dtype, shape):
    values = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    expected = io.BytesIO()
    np.lib.format.write_array(expected, values, version=(1, 0))
    write_blocks(tmp_path / "a.npy", shape, dtype, [values[:2], values[2:]])
    assert (tmp_path / "a.npy").read_bytes() == expected.getvalue()


def test_blocks_take_the_type_and_the_order_of_the_file(tmp_path):
    values = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    write_blocks(tmp_path / "a.npy", (2, 3), "<f2", [values])
    read = np.load(tmp_path / "a.npy")
    assert read.dtype == np.float16
    assert read.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def test_rows_come_some_at_a_time_in_the_order_asked_for():
    array, rows = np.arange(10) * 10, np.array([9, 1, 1, 4, 0])
    blocks = [block.tolist() for block in some_rows(array.__getitem__, rows, 2)]
    assert blocks == [[90, 10], [10, 40], [0]]
    assert list(some_rows(array.__getitem__, rows[:0])) == []
