"""A data set in numbers, counted by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mispair.data import DataConfig
from mispair.data.inspection.check import check_data
from mispair.data.vocabulary import Vocabulary
from tests.data.samples import features, write_lines


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three images with two captions each, and two dev images with one."""
    np.save(tmp_path / "train_ims.npy", features(3, regions=2, width=5))
    np.save(tmp_path / "dev_ims.npy", features(2, regions=2, width=5, seed=1))
    write_lines(
        tmp_path / "train_caps.txt", ["a dog", "a dog runs", "a cat", "a cat sleeps", "a cow", "a big cow eats"]
    )
    write_lines(tmp_path / "dev_caps.txt", ["a dog", "a zebra"])
    return tmp_path


def test_every_split_is_counted(folder: Path) -> None:
    told = []
    found = check_data(DataConfig(path=str(folder), min_count=1), report=lambda *what: told.append(what))
    train, dev = found.splits
    assert (train.split, train.pairs, train.images, train.captions_per_image) == ("train", 6, 3, (2, 2))
    assert (train.words, train.longest) == (2 + 3 + 2 + 3 + 2 + 4, 4)
    assert (dev.split, dev.pairs, dev.images, dev.captions_per_image) == ("dev", 2, 2, (1, 1))
    assert train.unknown is dev.unknown is None, "no vocabulary was given"
    assert found.vocabulary == 4 + 8
    side = train.sides[0]
    assert (side.name, side.rows, side.regions, side.width, side.dtype) == ("image", 3, 2, 5, "float32")
    values = np.load(folder / "train_ims.npy")
    assert (side.low, side.high) == pytest.approx((values.min(), values.max()))
    assert {what for what, *_ in told} >= {"train image features", "train captions", "dev captions"}


def test_the_share_of_words_that_a_given_vocabulary_lacks(folder: Path, tmp_path: Path) -> None:
    Vocabulary.build(["a dog a cat runs"], 1).save(tmp_path / "words.json")
    config = DataConfig(path=str(folder), vocabulary=str(tmp_path / "words.json"))
    train, dev = check_data(config).splits
    assert train.unknown == pytest.approx(5 / 16)  # sleeps, cow, big, cow, eats
    assert dev.unknown == pytest.approx(1 / 4)


def test_a_train_split_alone_is_a_finding(folder: Path) -> None:
    assert not any(finding.kind == "no dev split" for finding in check_data(DataConfig(path=str(folder))).findings)
    (folder / "dev_ims.npy").unlink()
    (folder / "dev_caps.txt").unlink()
    assert any(finding.kind == "no dev split" for finding in check_data(DataConfig(path=str(folder))).findings)
