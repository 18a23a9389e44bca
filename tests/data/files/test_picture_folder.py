"""A name means a file below the folder; what leads out of it is let in only where that is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from mispair.data.files import picture_folder
from mispair.data.files.picture_folder import (
    AMBIGUOUS,
    CLAIMED,
    OUTSIDE,
    SEVERAL,
    FolderStore,
    index_folder,
    is_picture_name,
)
from mispair.pictures.decode import Broken
from tests.data.picture_samples import picture, write_pictures


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_pictures(tmp_path, ["outside.png", "in/a.png", "in/deep/b.png"])
    return tmp_path / "in"


def test_what_lies_outside_is_not_read(folder: Path) -> None:
    assert FolderStore(folder).resolve("../outside.png") is None
    assert FolderStore(folder).read("../outside.png") == Broken(OUTSIDE)
    assert FolderStore(folder).read("a.png") == picture(1)


def test_what_lies_outside_is_read_where_that_is_allowed(folder: Path) -> None:
    store = FolderStore(folder, allow_outside=True)
    assert store.read("../outside.png") == picture(0)
    assert store.resolve("a.png") == (folder / "a.png").resolve()
    assert store.resolve("") is None
    assert store.resolve("a\0b") is None


def test_a_name_is_found_with_an_ending_added_and_deeper(folder: Path) -> None:
    index = index_folder(folder, ["a", "elsewhere/b.png", "nobody", "https://a/b.png"])
    assert index.places == {"a": "a.png", "elsewhere/b.png": "deep/b.png"}
    assert index.missing.keys() == {"nobody", "https://a/b.png"}


def test_capitals_may_differ_where_that_leaves_one_picture(tmp_path: Path) -> None:
    """As where pictures and table come from a system that takes IMG.JPG and img.jpg for the same."""
    write_pictures(tmp_path, ["IMG_1.PNG", "x/b.png", "x/B.png", "y/c.png", "y/C.png"])
    asked = ["img_1.png", "Img_1", "B.png", "b.PNG", "elsewhere/c.png"]
    index = index_folder(tmp_path, asked)
    assert index.places == {
        "img_1.png": "IMG_1.PNG", "Img_1": "IMG_1.PNG", "B.png": "x/B.png", "elsewhere/c.png": "y/c.png"
    }  # fmt: skip
    assert index.missing == {"b.PNG": SEVERAL}


def test_the_picture_that_one_name_says_in_full_is_not_that_of_a_name_with_another_folder(tmp_path: Path) -> None:
    """Where x/1.png was lost, its caption would stand beside y/1.png: a mismatch that nobody made but the reader."""
    write_pictures(tmp_path, ["y/1.png", "y/2.png", "3.png"])
    index = index_folder(tmp_path, ["x/1.png", "y/1.png", "x/2.png", "3.png", "y/3.png", "./3.png"])
    assert index.places == {"y/1.png": "y/1.png", "x/2.png": "y/2.png", "3.png": "3.png", "./3.png": "./3.png"}
    assert index.missing == {"x/1.png": CLAIMED, "y/3.png": CLAIMED}


def test_a_picture_that_names_with_several_folders_could_mean_is_nobodys(tmp_path: Path) -> None:
    write_pictures(tmp_path, ["1.png", "deep/2.png", "deep/3.png"])
    index = index_folder(tmp_path, ["x/1.png", "y/1.png", "x/2.png", "X/2.PNG", "z/3.png"])
    assert index.places == {"x/2.png": "deep/2.png", "X/2.PNG": "deep/2.png", "z/3.png": "deep/3.png"}
    assert index.missing == {"x/1.png": AMBIGUOUS, "y/1.png": AMBIGUOUS}


def test_several_pictures_of_one_file_name_are_called_that(tmp_path: Path) -> None:
    write_pictures(tmp_path, ["x/1.png", "y/1.png"])
    assert index_folder(tmp_path, ["1.png", "2.png"]).missing == {"1.png": SEVERAL, "2.png": "missing"}


@pytest.mark.parametrize(
    ("name", "picture"), [("a.PPM", True), ("b/c.jpeg", True), ("d.txt", False), (".e.png", False), ("jpg", False)]
)
def test_every_format_that_is_decoded_is_a_picture_by_its_name(name: str, picture: bool) -> None:
    assert is_picture_name(name) == picture


def test_of_many_names_directories_are_listed_and_nothing_else_is_found_by_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A million names one by one take minutes; whatever is odd about one is still looked at one by one."""
    (folder / "out").symlink_to(folder.parent)
    (folder / "way").symlink_to(folder / "deep")
    (folder / "link.png").symlink_to(folder.parent / "outside.png")
    (folder / "inner.png").symlink_to(folder / "a.png")
    odd = [
        "", ".", "..", "../outside.png", "out/outside.png", "way/b.png", "link.png", "inner.png", "deep/../a.png",
        "deep", "deep//b.png", "./a.png", str(folder / "a.png"), str(folder.parent / "outside.png"), "deep\\b.png",
        "A.PNG", "a", "x\0/a.png", "a\0.png", "no/a.png", "y" * 5000, "https://a/b.png", "/etc/passwd",
    ]  # fmt: skip
    names = ["a.png", "deep/b.png", *odd]
    one_by_one = index_folder(folder, names)
    looked: list[str] = []
    find = picture_folder._find
    monkeypatch.setattr(picture_folder, "_LISTED_FROM", 1)
    monkeypatch.setattr(picture_folder, "_find", lambda store, name: looked.append(name) or find(store, name))
    listed = index_folder(folder, names)
    assert (listed.places, listed.missing) == (one_by_one.places, one_by_one.missing)
    assert set(looked) == set(odd) - {"deep\\b.png", str(folder / "a.png")}
