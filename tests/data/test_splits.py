"""PairData: batches as the models get them, noise on train alone, hashes that tell data sets apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mispair.data import DataConfig, NoiseConfig, ScenesConfig, open_split, scene_truth
from mispair.data.noise import make_index, write_index
from mispair.data.readers.dispatch import given_pairs, open_pairing
from mispair.data.vocabulary import Vocabulary
from mispair.errors import InputError
from tests.data.samples import features, precomp, write_lines


def folder_config(folder: Path, **more: object) -> DataConfig:
    return DataConfig(path=str(precomp(folder, splits=("train", "dev", "test"))), min_count=1, **more)  # type: ignore[arg-type]


def test_batch_by_hand(tmp_path: Path) -> None:
    data = open_split(folder_config(tmp_path), "train")
    assert (len(data), data.captions_per_image, len(data.images)) == (35, 5, 7)
    ids = torch.tensor([34, 0, 7])
    batch = data.batch(ids)
    assert torch.equal(batch.pair_ids, ids)
    assert np.array_equal(batch.images.numpy(), features(7)[[6, 0, 1]])
    assert batch.images.dtype == torch.float32
    assert batch.texts.dtype == torch.int64
    assert batch.image_mask.all()
    assert data.vocabulary is not None
    words = [data.vocabulary.words[k] for k in batch.texts[2][batch.text_mask[2]]]
    assert words == ["<start>", "a", "train", "dog", "number", "7", "runs", "on", "the", "grass", ".", "<end>"]


def test_of_a_side_that_is_not_asked_for_nothing_is_there(tmp_path: Path) -> None:
    data = open_split(folder_config(tmp_path), "train")
    ids, both = np.array([3, 9]), data.batch(np.array([3, 9]))
    images, texts = data.batch(ids, "images"), data.batch(ids, "texts")
    assert torch.equal(images.images, both.images)
    assert torch.equal(texts.texts, both.texts)
    assert images.texts.shape == images.text_mask.shape == texts.images.shape == texts.image_mask.shape == (2, 0)
    assert images.text_mask.dtype == texts.image_mask.dtype == torch.bool


def test_noise_moves_train_and_nothing_else(tmp_path: Path) -> None:
    noisy = folder_config(tmp_path, noise=NoiseConfig(rate=1.0, seed=1))
    train, clean = open_split(noisy, "train"), open_split(folder_config(tmp_path), "train")
    assert train.noise_hash is not None
    assert clean.noise_hash is None
    assert clean.table.truth is None
    assert train.content_hash == clean.content_hash
    assert train.table.truth is not None
    assert train.table.truth.mismatched.any()
    assert np.array_equal(train.image_of_text, clean.image_of_text), "evaluation knows where texts belong"
    shown = train.batch(np.arange(35)).images.numpy()
    assert np.array_equal(shown, features(7)[train.table.image_rows])
    for split in ("dev", "test"):
        data = open_split(noisy, split)
        assert data.noise_hash is None
        assert np.array_equal(data.table.image_rows, np.repeat(np.arange(7), 5))


@pytest.mark.parametrize("kind", [{"protocol": "image"}, {"protocol": "caption"}, {"shift": 1}])
def test_a_dev_split_as_noisy_as_train_takes_the_given_pairs_for_right(tmp_path: Path, kind: dict[str, Any]) -> None:
    config = folder_config(tmp_path, noise=NoiseConfig(rate=1.0, seed=1, dev=True, oracle=True, **kind))
    dev, test, clean = open_split(config, "dev"), open_split(config, "test"), open_split(folder_config(tmp_path), "dev")
    assert dev.noise_hash is not None
    assert test.noise_hash is None
    assert len(dev) == 35, "an oracle of the train pairs chooses its epoch by a dev as it is"
    assert np.array_equal(dev.owners[dev.table.text_rows], dev.table.image_rows)
    assert not np.array_equal(dev.owners, clean.owners)
    assert np.array_equal(dev.image_of_text, clean.image_of_text)
    assert np.array_equal(test.owners, test.image_of_text)


@pytest.mark.parametrize("kind", [{"index": "i.npy"}, {"repeat": 1, "rate": 0.5}])
def test_noise_that_dev_cannot_have_is_refused(kind: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="mismatches of dev are drawn or shifted"):
        NoiseConfig(dev=True, **kind)


def test_an_index_file_is_the_draw_it_came_from(tmp_path: Path) -> None:
    drawn = NoiseConfig(rate=0.6, seed=2, protocol="caption")
    config = folder_config(tmp_path / "data", noise=drawn)
    write_index(tmp_path / "i.npy", make_index(given_pairs(open_pairing(config, "train")), drawn))
    read = open_split(folder_config(tmp_path / "data", noise=NoiseConfig(index=str(tmp_path / "i.npy"))), "train")
    assert read.noise_hash == open_split(config, "train").noise_hash


def test_vocabulary_comes_from_train_or_from_a_file(tmp_path: Path) -> None:
    config = folder_config(tmp_path)
    train, test = open_split(config, "train"), open_split(config, "test")
    assert test.vocabulary == train.vocabulary
    assert train.vocabulary is not None
    assert "test" not in train.vocabulary.ids
    other = Vocabulary.build(["a dog"], 1)
    assert open_split(config, "test", vocabulary=other).vocabulary == other
    other.save(tmp_path / "v.json")
    assert open_split(folder_config(tmp_path, vocabulary=str(tmp_path / "v.json")), "test").vocabulary == other


def test_no_train_split_and_no_vocabulary(tmp_path: Path) -> None:
    config = DataConfig(path=str(precomp(tmp_path, splits=("test",))))
    with pytest.raises(InputError, match=r"made from the train split.*data.vocabulary"):
        open_split(config, "test")


def test_content_hash_sees_captions_features_and_pairing(tmp_path: Path) -> None:
    base = open_split(DataConfig(path=str(precomp(tmp_path / "a"))), "train").content_hash
    assert open_split(DataConfig(path=str(precomp(tmp_path / "b"))), "train").content_hash == base
    lines = (tmp_path / "b/train_caps.txt").read_text().splitlines()
    write_lines(tmp_path / "b/train_caps.txt", [*lines[:-1], "another"])
    np.save(precomp(tmp_path / "c") / "train_ims.npy", features(7, seed=9))
    hashes = {open_split(DataConfig(path=str(tmp_path / name)), "train").content_hash for name in "abc"}
    assert len(hashes) == 3


def test_dev_and_test_may_have_limits_of_their_own() -> None:
    config = DataConfig(path="scenes", scenes=ScenesConfig(pictures=120), dev_limit=3, test_limit=4)
    assert len(open_split(config, "dev").images) == 3
    assert len(open_split(config, "test").images) == 4
    assert len(open_split(config.model_copy(update={"limit": 2}), "dev").images) == 2
    assert len(open_split(config, "train").images) > 4


def test_limit_keeps_the_first_images(tmp_path: Path) -> None:
    data = open_split(folder_config(tmp_path, limit=3), "train")
    assert (len(data), len(data.images)) == (15, 3)
    assert data.table.image_rows.max() == 2
    assert any("limit" in note for note in data.notes)


def test_cut_captions_are_noted(tmp_path: Path) -> None:
    data = open_split(folder_config(tmp_path, max_words=4), "train")
    assert data.batch(np.arange(3)).texts.shape == (3, 6)
    assert any("35 captions of train cut to 4 words" in note for note in data.notes)


def test_scenes_are_the_default() -> None:
    data = open_split(DataConfig(scenes=ScenesConfig(pictures=40)), "test")
    assert data.name == "scenes"
    truth = scene_truth(data)
    assert truth is not None
    assert truth.shape == (10, 50)
    assert truth[data.image_of_text, np.arange(50)].all()


def test_truth_of_files_is_unknown(tmp_path: Path) -> None:
    assert scene_truth(open_split(folder_config(tmp_path), "train")) is None


def test_wrong_row_numbers_are_ours_to_notice(tmp_path: Path) -> None:
    data = open_split(folder_config(tmp_path), "train")
    with pytest.raises(AssertionError):
        data.batch(torch.zeros(2, 1, dtype=torch.int64))
    with pytest.raises(AssertionError):
        data.image_batch(torch.zeros(2))
