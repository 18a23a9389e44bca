"""Pictures in a tar: each read from its place, found by its name; what cannot be read is broken, not fatal."""

from __future__ import annotations

import io
import os
import tarfile
import unicodedata
from pathlib import Path

import pytest

from mispair.data.files.picture_folder import CLAIMED
from mispair.data.files.picture_tar import TarStore, index_tars
from mispair.data.picture_store import PictureIndex
from mispair.pictures.decode import Broken
from tests.data.picture_samples import picture, write_tar


def test_a_place_that_cannot_be_read_is_a_broken_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tar = tmp_path / "a.tar"
    tar.write_bytes(b"0123456789")
    store = TarStore((tar,))
    assert store.read((0, 2, 3)) == b"234"
    short = store.read((0, 8, 5))
    assert isinstance(short, Broken)
    assert "truncated" in short.reason

    def fails(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "pread", fails)
    broken = store.read((0, 2, 3))
    assert isinstance(broken, Broken)
    assert "Input/output error" in broken.reason


def _found(index: PictureIndex, *names: str) -> list[bytes | Broken]:
    return list(index.select(names))


def test_pictures_of_one_file_name_in_several_tars_are_told_apart_by_the_name_of_the_tar(tmp_path: Path) -> None:
    tars = [write_tar(tmp_path / f"{k}.tar", {"1.png": picture(k), "2.png": picture(9 + k)}) for k in range(2)]
    names = ["0/1.png", "1/1.png", "photos/1/2.png", "1/1"]
    index = index_tars(tars, names)
    assert _found(index, *names) == [picture(0), picture(1), picture(10), picture(1)]


def test_capitals_may_differ_where_that_leaves_one_picture(tmp_path: Path) -> None:
    tar = write_tar(tmp_path / "a.tar", {"x/IMG.PNG": picture(0), "b.png": picture(1), "B.png": picture(2)})
    index = index_tars([tar], ["X/img.png", "X/img", "B.png", "b.PNG"])
    assert _found(index, "X/img.png", "X/img", "B.png") == [picture(0), picture(0), picture(2)]
    assert _found(index_tars([tar], ["img.png"]), "img.png") == [picture(0)]
    assert list(index.missing) == ["b.PNG"]


def test_a_file_name_that_several_pictures_have_is_nobodys(tmp_path: Path) -> None:
    """Which of them is meant cannot be told; the first would be the wrong one half of the time."""
    tars = [write_tar(tmp_path / f"{k}.tar", {"1.png": picture(k), f"only {k}.png": picture(5 + k)}) for k in range(2)]
    index = index_tars(tars, ["1.png", "1", "a/1.png", "only 1.png"])
    assert index.places.keys() == {"only 1.png"}
    assert set(index.missing) == {"1.png", "1", "a/1.png"}
    assert all("several pictures" in reason for reason in index.missing.values())
    folders = write_tar(tmp_path / "f.tar", {"a/1.png": picture(0), "b/1.png": picture(1)})
    index = index_tars([folders], ["a/1.png", "b/1", "1.png"])
    assert _found(index, "a/1.png", "b/1") == [picture(0), picture(1)]
    assert set(index.missing) == {"1.png"}


def test_without_its_ending_a_name_means_the_picture_of_a_sample(tmp_path: Path) -> None:
    """Its caption lies before it in the tar, as whatever sorts names puts it."""
    tar = write_tar(tmp_path / "x.tar", {"7.json": b"{}", "7.png": picture(0), "7.txt": b"a dog"})
    assert _found(index_tars([tar], ["7", "x/7"]), "7", "x/7") == [picture(0), picture(0)]


def test_the_picture_that_one_name_says_in_full_is_not_that_of_a_name_with_another_folder(tmp_path: Path) -> None:
    tar = write_tar(tmp_path / "x.tar", {"y/1.png": picture(0), "2.png": picture(1)})
    names = ["z/1.png", "y/1.png", "x/y/1.png", "2", "a/2.png", "x/2.png"]
    index = index_tars([tar], names)
    assert _found(index, "y/1.png", "x/y/1.png", "2", "x/2.png") == [picture(0), picture(0), picture(1), picture(1)]
    assert index.missing == {"z/1.png": CLAIMED, "a/2.png": CLAIMED}


def test_of_one_name_twice_in_a_tar_the_last_counts(tmp_path: Path) -> None:
    tar = write_tar(tmp_path / "x.tar", {"1.png": picture(0)})
    with tarfile.open(tar, "a") as more:
        info = tarfile.TarInfo("1.png")
        info.size = len(picture(1))
        more.addfile(info, io.BytesIO(picture(1)))
    assert _found(index_tars([tar], ["1.png"]), "1.png") == [picture(1)]


def test_letters_with_accents_are_found_however_a_tar_writes_them(tmp_path: Path) -> None:
    names = ["caf\u00e9.png", "caf\u00e9"]
    tar = write_tar(tmp_path / "x.tar", {unicodedata.normalize("NFD", names[0]): picture(0)})
    assert _found(index_tars([tar], names), *names) == [picture(0), picture(0)]
