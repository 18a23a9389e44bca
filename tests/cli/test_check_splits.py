"""`mispair check` between splits and over words: widths, regions, ids, rare words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cli.calls import Run, findings
from tests.data.picture_samples import write_pictures
from tests.data.samples import captions, features, precomp, run, table, write_lines


@pytest.fixture
def mispair(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return lambda *arguments: run(monkeypatch, capsys, *arguments)


def test_images_shared_between_splits(tmp_path: Path, mispair: Run) -> None:
    precomp(tmp_path, splits=("train", "test"))
    array = features(7, seed=1)
    array[2] = features(7)[5]
    np.save(tmp_path / "test_ims.npy", array)
    assert findings(mispair("check", tmp_path, "--json"))["images shared between splits"]["rows"] == [2]


def test_splits_of_different_width_are_refused(tmp_path: Path, mispair: Run) -> None:
    precomp(tmp_path, splits=("train", "dev"))
    np.save(tmp_path / "dev_ims.npy", features(7, width=5))
    ran = mispair("check", tmp_path)
    assert ran.code == 2
    for part in ("dev_ims.npy", "width 5", "train_ims.npy", "width 4"):
        assert part in ran.err


def test_more_regions_than_train_has_are_refused(tmp_path: Path, mispair: Run) -> None:
    precomp(tmp_path, splits=("train", "dev"))
    np.save(tmp_path / "dev_ims.npy", features(7, regions=4))
    ran = mispair("check", tmp_path)
    assert ran.code == 2
    assert "dev_ims.npy has 4 regions per image and train_ims.npy 3" in ran.err


def test_fewer_regions_and_other_types_are_findings(tmp_path: Path, mispair: Run) -> None:
    precomp(tmp_path, splits=("train", "dev"))
    np.save(tmp_path / "dev_ims.npy", features(7, regions=2, dtype="float16"))
    assert set(findings(mispair("check", tmp_path, "--json"))) == {
        "regions differ between splits",
        "types differ between splits",
    }


def test_a_test_split_in_other_words(tmp_path: Path, mispair: Run) -> None:
    precomp(tmp_path, splits=("train", "dev", "test"))
    write_lines(tmp_path / "test_caps.txt", [f"ein Hund mit der Nummer {k}" for k in range(35)])
    text = findings(mispair("check", tmp_path, "--json"))["words the first split lacks"]["text"]
    assert "test: 83% of its words" in text


def test_few_captions_share_few_words_in_any_language(tmp_path: Path, mispair: Run) -> None:
    """Captions of one kind: words as they occur in any language, drawn for both splits alike."""
    precomp(tmp_path, splits=("train", "test"))
    rng = np.random.default_rng(0)
    likely = 1 / np.arange(1, 3001)
    drawn = rng.choice(3000, (70, 9), p=likely / likely.sum())
    for split, rows in (("train", drawn[:35]), ("test", drawn[35:])):
        write_lines(tmp_path / f"{split}_caps.txt", [" ".join(f"w{k}" for k in row) for row in rows])
    assert "words the first split lacks" not in findings(mispair("check", tmp_path, "--json"))


def test_ids_that_repeat_within_and_between_splits(tmp_path: Path, mispair: Run) -> None:
    precomp(tmp_path, splits=("train", "dev"))
    write_lines(tmp_path / "train_ids.txt", ["a", "b", "c", "d", "e", "f", "b"])
    write_lines(tmp_path / "dev_ids.txt", ["t", "u", "v", "w", "x", "y", "c"])
    ran = findings(mispair("check", tmp_path, "--json"))
    assert ran["ids repeat"]["rows"] == [6]
    assert "'b'" in ran["ids repeat"]["text"]
    assert "'c'" in ran["ids shared between splits"]["text"]


def test_no_dev_split_is_said(tmp_path: Path, mispair: Run) -> None:
    assert "dev_ims.npy" in findings(mispair("check", precomp(tmp_path / "a"), "--json"))["no dev split"]["text"]
    assert "holds out 10% of the images as dev and 10% as test" in mispair("check", table(tmp_path / "b")).out


def test_captions_all_alike(tmp_path: Path, mispair: Run) -> None:
    write_lines(precomp(tmp_path) / "train_caps.txt", ["a photo"] * 35)
    assert "'a photo'" in findings(mispair("check", tmp_path, "--json"))["captions all alike"]["text"]


def test_the_share_of_rare_words_is_said(tmp_path: Path, mispair: Run) -> None:
    lines = [f"word{k} other{k} a dog" for k in range(100)]
    path = write_lines(tmp_path / "p.csv", ["image_id,caption", *(f"im{k},{line}" for k, line in enumerate(lines))])
    text = findings(mispair("check", path, "--json"))["rare words"]["text"]
    assert "50% of all words (200 of 202 different ones)" in text
    assert "fewer than 4 times" in text


def test_rare_words_of_pictures_are_a_note_since_an_encoder_reads_the_captions(tmp_path: Path, mispair: Run) -> None:
    """A folder of good pictures is clean: training does not learn its words, unless asked to."""
    write_pictures(tmp_path, [f"{k}.png" for k in range(100)])
    path = write_lines(
        tmp_path / "p.csv", ["file_name,caption", *(f"{k}.png,word{k} other{k} a dog" for k in range(100))]
    )
    ran = mispair("check", path)
    assert ran.code == 0, ran.out
    assert "50% of all words (200 of 202 different ones)" in ran.out
    assert "where words are learned (--texts words, --cells); otherwise the encoder of the pictures reads" in ran.out
    assert "rare words" not in findings(mispair("check", path, "--json"))


def test_captions_are_long_only_beyond_what_training_reads(tmp_path: Path, mispair: Run) -> None:
    lines = captions(35)
    lines[9] = "dog " * 200
    write_lines(precomp(tmp_path) / "train_caps.txt", lines)
    assert "over-long captions" not in findings(mispair("check", tmp_path, "--json"))
