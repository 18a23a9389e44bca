"""The hash of a data set sees every byte that training sees, and is not fooled by its own cache."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from mispair.data import DataConfig, open_split
from mispair.data import identity as module
from mispair.data.features import FeatureStore, open_features
from mispair.data.identity import hash_features
from tests.data.samples import features, precomp


def test_values_shape_type_selection_and_order_count() -> None:
    array = features(7)
    other = array.copy()
    other[3, 1, 1] += 1
    stores = [FeatureStore(array), FeatureStore(other), FeatureStore(array[:6]), FeatureStore(array.astype("f2"))]
    stores.append(FeatureStore(array, rows=np.array([1, 0, 2, 3, 4, 5, 6])))
    stores.append(FeatureStore(array, lengths=np.array([3, 3, 3, 3, 3, 3, 2])))
    assert len({hash_features(store) for store in stores}) == len(stores)
    assert hash_features(FeatureStore(array.copy())) == hash_features(stores[0])


def test_a_selection_of_a_file_is_the_file_of_that_selection(tmp_path: Path) -> None:
    array = features(7)
    np.save(tmp_path / "x.npy", array)
    rows = np.array([4, 1, 6])
    assert hash_features(open_features(tmp_path / "x.npy").subset(rows)) == hash_features(FeatureStore(array[rows]))


@pytest.mark.parametrize("image", [0, 1, 97, 211, 400])
def test_one_changed_image_anywhere_is_noticed(tmp_path: Path, image: int) -> None:
    """A sample of rows would miss most of these."""
    folder = precomp(tmp_path, images=401, per_image=1)
    before = open_split(DataConfig(path=str(folder)), "train").content_hash
    array = np.load(folder / "train_ims.npy")
    array[image, 2, 3] += 1e-3
    np.save(folder / "train_ims.npy", array)
    assert open_split(DataConfig(path=str(folder)), "train").content_hash != before


def test_a_large_file_is_hashed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MISPAIR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "_QUICK_BYTES", 0)
    monkeypatch.setattr(module, "_BLOCK_BYTES", 100)  # several blocks
    np.save(tmp_path / "x.npy", features(7))
    first = hash_features(open_features(tmp_path / "x.npy"))
    assert first == hash_features(FeatureStore(features(7)))
    calls: list[int] = []
    raw = FeatureStore.raw
    monkeypatch.setattr(FeatureStore, "raw", lambda self, rows: calls.append(len(rows)) or raw(self, rows))
    assert hash_features(open_features(tmp_path / "x.npy")) == first
    assert calls == []
    assert hash_features(open_features(tmp_path / "x.npy").subset(np.array([2]))) != first
    assert calls


def test_a_file_changed_in_place_is_hashed_again_even_with_its_old_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MISPAIR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "_QUICK_BYTES", 0)
    path = tmp_path / "x.npy"
    np.save(path, features(7))
    first, status = hash_features(open_features(path)), os.stat(path)
    with path.open("r+b") as file:
        file.seek(200)
        file.write(b"\1\2\3\4")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert hash_features(open_features(path)) != first


@pytest.mark.parametrize("content", ["", "short", "é" * 64])
def test_a_damaged_or_unwritable_cache_costs_time_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    monkeypatch.setenv("MISPAIR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "_QUICK_BYTES", 0)
    np.save(tmp_path / "x.npy", features(7))
    first = hash_features(open_features(tmp_path / "x.npy"))
    (note,) = (tmp_path / "cache/hashes").iterdir()
    note.write_text(content)
    assert hash_features(open_features(tmp_path / "x.npy")) == first
    monkeypatch.setenv("MISPAIR_CACHE", str(tmp_path / "x.npy"))  # a file where the folder should be
    assert hash_features(open_features(tmp_path / "x.npy")) == first
