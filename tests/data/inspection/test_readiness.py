"""What would make a training pointless is refused before it starts, and what a person should know is said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mispair.data import DataConfig, PairData, open_split
from mispair.data.inspection.readiness import check_readiness
from mispair.errors import InputError
from tests.data.samples import captions, features, precomp, write_lines


def opened(folder: Path) -> tuple[PairData, PairData]:
    config = DataConfig(path=str(folder))
    train = open_split(config, "train")
    return train, open_split(config, "dev", vocabulary=train.vocabulary)


def folder(path: Path) -> Path:
    return precomp(path, splits=("train", "dev"))


def test_good_data_is_not_talked_about(tmp_path: Path) -> None:
    assert check_readiness(*opened(folder(tmp_path))) == ()


@pytest.mark.parametrize("split", ["train", "dev"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_that_are_no_numbers_are_named(tmp_path: Path, split: str, value: float) -> None:
    array = features(7)
    array[2, 1, 3] = array[5, 0, 0] = value
    np.save(folder(tmp_path) / f"{split}_ims.npy", array)
    with pytest.raises(InputError, match=rf"{split}_ims.npy: 2 rows \(2, 5\) hold NaN"):
        check_readiness(*opened(tmp_path))


def test_what_float32_cannot_hold_is_named_too(tmp_path: Path) -> None:
    array = features(7, dtype="float64")
    array[3, 0, 0] = -1e300
    np.save(folder(tmp_path) / "train_ims.npy", array)
    with pytest.raises(InputError, match=r"1 row \(3\)"):
        check_readiness(*opened(tmp_path))


def test_rows_of_a_folded_array_are_rows_of_the_file(tmp_path: Path) -> None:
    array = features(7)
    array[2] = np.nan
    np.save(folder(tmp_path) / "train_ims.npy", np.repeat(array, 5, axis=0))
    with pytest.raises(InputError, match=r"1 row \(10\)"):
        check_readiness(*opened(tmp_path))


@pytest.mark.parametrize(("caption", "word"), [("", "empty"), ("A photo", "alike")])
def test_captions_without_a_difference_are_refused(tmp_path: Path, caption: str, word: str) -> None:
    path = tmp_path / "p.csv"
    write_lines(path, ["image_id,caption", *(f'im{k},"{caption}"' for k in range(30))])
    np.save(tmp_path / "p.npy", features(30))
    data = open_split(DataConfig(path=str(path)), "train")
    with pytest.raises(InputError, match=rf"all {len(data)} captions of train are {word}.*--caption-column"):
        check_readiness(data)


def test_features_without_a_difference_are_refused(tmp_path: Path) -> None:
    array = features(7)
    array[:] = array[3]
    np.save(folder(tmp_path) / "train_ims.npy", array)
    with pytest.raises(InputError, match=r"train_ims.npy: all 7 rows of train are alike; expected features that tell"):
        check_readiness(*opened(tmp_path))
    array[6, 0, 0] += 1
    np.save(tmp_path / "train_ims.npy", array)
    check_readiness(*opened(tmp_path))


def test_widths_that_differ_are_refused(tmp_path: Path) -> None:
    np.save(folder(tmp_path) / "dev_ims.npy", features(7, width=9))
    with pytest.raises(InputError, match=r"dev_ims.npy has image features of width 9 and train_ims.npy of width 4"):
        check_readiness(*opened(tmp_path))


def test_some_empty_captions_bytes_that_are_not_utf8_and_unknown_words_are_said(tmp_path: Path) -> None:
    lines = [line.encode() for line in captions(35)]
    lines[4] = b""
    lines[6] = b"caf\xe9"
    (folder(tmp_path) / "train_caps.txt").write_bytes(b"\n".join(lines) + b"\n")
    write_lines(tmp_path / "dev_caps.txt", [f"ein Hund Nummer {k} ." for k in range(35)])
    told = "\n".join(check_readiness(*opened(tmp_path)))
    assert "1 of 35 captions of train is empty" in told
    assert "train_caps.txt: bytes that are not UTF-8 in line 7" in told
    assert "80% of the words of dev have no id of their own" in told
