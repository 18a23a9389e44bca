from __future__ import annotations

import os
from pathlib import Path

import pytest

from mispair.pictures.containment import contained


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = tmp_path / "photos"
    (home / "sub").mkdir(parents=True)
    (home / "sub" / "a.jpg").write_bytes(b"a")
    (tmp_path / "secret.jpg").write_bytes(b"s")
    (tmp_path / "photos-2").mkdir()
    (tmp_path / "photos-2" / "b.jpg").write_bytes(b"b")
    return home


def test_inside(folder: Path):
    file = folder.resolve() / "sub" / "a.jpg"
    for name in ("sub/a.jpg", "sub/../sub/a.jpg", str(file), "./sub//a.jpg", "../photos/sub/a.jpg"):
        assert contained(folder, name) == file, name
    assert contained(folder, "not yet.jpg") == folder.resolve() / "not yet.jpg"


def test_outside(folder: Path):
    for name in ("../secret.jpg", "/etc/passwd", "", ".", "sub/..", "a\0b", "../photos-2/b.jpg"):
        assert contained(folder, name) is None, name


def test_links_are_followed_before_deciding(folder: Path):
    os.symlink(folder.parent / "secret.jpg", folder / "link.jpg")
    os.symlink(folder.parent / "photos-2", folder / "linked")
    os.symlink(folder / "sub", folder / "within")
    os.symlink(folder / "round.jpg", folder / "round.jpg")
    assert contained(folder, "link.jpg") is None
    assert contained(folder, "linked/b.jpg") is None
    assert contained(folder, "round.jpg") is None
    assert contained(folder, "within/a.jpg") == folder.resolve() / "sub" / "a.jpg"
    os.symlink(folder, folder.parent / "door")
    assert contained(folder.parent / "door", "sub/a.jpg") == folder.resolve() / "sub" / "a.jpg"
