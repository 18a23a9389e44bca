"""Two arrays, no words: any two modalities."""

from pathlib import Path

import numpy as np
import pytest

from mispair.data import DataConfig, list_data_splits, open_source, open_split
from tests.data.samples import features


def test_two_files_with_sequences_on_both_sides(tmp_path: Path) -> None:
    a, b = features(60, 3, 4), features(60, 5, 7, "float16", seed=1)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    np.save(tmp_path / "b_lens.npy", np.arange(60) % 5 + 1)
    config = DataConfig(path=str(tmp_path / "a.npy"), second=str(tmp_path / "b.npy"), sides=("audio", "notes"))
    data = open_split(config, "all")
    assert data.sides == ("audio", "notes")
    assert data.vocabulary is None
    batch = data.batch(np.array([4, 9]))
    assert batch.images.shape == (2, 3, 4)
    assert batch.texts.shape == (2, 5, 7)
    assert batch.text_mask.sum(1).tolist() == [5, 5]
    assert np.array_equal(batch.texts.numpy(), b[[4, 9]].astype(np.float32))


def test_parts_keep_pairs_together(tmp_path: Path) -> None:
    a = np.arange(200, dtype=np.float32).reshape(100, 2)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", np.repeat(a, 2, 0))
    rows = []
    for split in ("train", "dev", "test"):
        data = open_split(DataConfig(path=str(tmp_path)), split)
        assert data.captions_per_image == 2
        batch = data.batch(np.arange(len(data)))
        assert np.array_equal(batch.images, batch.texts)
        rows += batch.images[::2, 0, 0].tolist()
    assert sorted(rows) == a[:, 0].tolist()


def test_folder_with_splits_and_named_sides(tmp_path: Path) -> None:
    for split in ("train", "test"):
        np.save(tmp_path / f"{split}_sketch.npy", features(4))
        np.save(tmp_path / f"{split}_photo.npy", features(4))
    config = DataConfig(path=str(tmp_path), sides=("sketch", "photo"))
    assert list_data_splits(config) == ["train", "test"]
    assert len(open_source(config, "test").image_of_text) == 4


@pytest.mark.parametrize("sides", [("image", "image"), ("", "text")])
def test_sides_need_names(sides: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="two different names"):
        DataConfig(sides=sides)
