"""Features in place: what is taken is what is there, and nothing is held."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mispair.data.features import FeatureStore, open_features
from tests.data.samples import features

SPARSE = """
import sys, time
import numpy as np
from mispair.data.features import open_features
start = time.process_time()
store = open_features(sys.argv[1])
opened = time.process_time() - start
held = 0
rng = np.random.default_rng(0)
total = 0.0
for _ in range(40):
    values, mask = store.take(rng.integers(0, len(store), 128))
    total += float(values[:, 0, 0].sum())
    status = open("/proc/self/status").read()
    held = max(held, int(status.split("RssAnon:")[1].split()[0]))
print(len(store), opened, total, held)
"""


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ">f4"])
@pytest.mark.parametrize("regions", [0, 3])
def test_take_equals_indexing(tmp_path: Path, dtype: str, regions: int) -> None:
    array = features(11, regions, 5).astype(dtype)
    np.save(tmp_path / "x.npy", array)
    store = open_features(tmp_path / "x.npy")
    rows = np.array([7, 0, 7, 10])
    values, mask = store.take(rows)
    assert values.dtype == np.float32
    assert values.shape == (4, regions or 1, 5)
    assert np.array_equal(values.reshape(4, -1), array[rows].astype(np.float32).reshape(4, -1))
    assert mask.all()
    assert (len(store), store.regions, store.width) == (11, regions or 1, 5)


def test_the_array_stays_on_disk(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", features(5))
    store = open_features(tmp_path / "x.npy")
    assert isinstance(store.array, np.memmap)
    assert not store.array.flags.writeable


def test_lengths_mask_the_padding(tmp_path: Path) -> None:
    array = features(3)
    array[1, 2:] = np.nan  # whatever stands in the padding must not come out
    np.save(tmp_path / "x.npy", array)
    np.save(tmp_path / "x_lens.npy", np.array([3, 2, 1]))
    values, mask = open_features(tmp_path / "x.npy").take(np.array([1, 2]))
    assert mask.tolist() == [[True, True, False], [True, False, False]]
    assert np.array_equal(values[0, :2], array[1, :2])
    assert not values[~mask].any()


def test_subset_of_subset() -> None:
    array = features(13)
    part = FeatureStore(array).subset(np.array([12, 3, 5, 7])).subset(np.array([2, 0]))
    assert len(part) == 2
    assert np.array_equal(part.take(np.array([0, 1]))[0], array[[5, 12]])


@pytest.mark.parametrize("row", [-1, 13])
def test_rows_outside_are_refused(row: int) -> None:
    with pytest.raises(IndexError):
        FeatureStore(features(13)).take(np.array([row]))


def test_blocks_are_the_whole() -> None:
    array = features(13)
    blocks = list(FeatureStore(array).blocks(5))
    assert [len(block) for block in blocks] == [5, 5, 3]
    assert np.array_equal(np.concatenate(blocks), array)


def test_header_written_by_python_2(tmp_path: Path) -> None:
    array = features(7)
    text = b"{'descr': '<f4', 'fortran_order': False, 'shape': (7L, 3L, 4L), }".ljust(117) + b"\n"
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + array.tobytes())
    assert np.array_equal(open_features(tmp_path / "x.npy").take(np.arange(7))[0], array)


def test_raw_rows_are_as_the_file_has_them(tmp_path: Path) -> None:
    array = features(7, dtype="float16")
    np.save(tmp_path / "x.npy", array)
    np.save(tmp_path / "x_lens.npy", np.array([1, 2, 3, 1, 2, 3, 1]))
    store = open_features(tmp_path / "x.npy").subset(np.array([5, 2]))
    assert store.raw(np.array([1, 0])).dtype == np.float16
    assert np.array_equal(store.raw(np.array([1, 0])), array[[2, 5]])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the memory of a process as Linux tells it")
def test_33_gigabytes_in_less_than_a_half(tmp_path: Path) -> None:
    """COCO's train array, sparse: opened at once, 40 random batches of 128 (1.5 GB), below 0.5 GB of the process' own.

    Pages of the file are the system's: it takes them back when it needs them, and how many it leaves is its affair.
    """
    shape = (113_287, 36, 2048)
    path = tmp_path / "coco.npy"
    try:
        with path.open("wb") as stream:
            np.lib.format.write_array_header_1_0(stream, {"descr": "<f4", "fortran_order": False, "shape": shape})
            stream.truncate(stream.tell() + 4 * int(np.prod(shape)))
    except OSError as error:
        pytest.skip(f"this disk cannot hold a sparse file of 33 GB: {error}")
    if path.stat().st_blocks * 512 > 1e9:
        pytest.skip("this disk has no sparse files")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", SPARSE, str(path)], capture_output=True, text=True, check=True, env=environment
    )
    rows, opened, total, kilobytes = ran.stdout.split()
    path.unlink()
    assert int(rows) == shape[0]
    assert float(total) == 0.0
    assert float(opened) < 1.0
    assert int(kilobytes) < 0.5e6, f"{int(kilobytes) / 1e6:.2f} GB"
