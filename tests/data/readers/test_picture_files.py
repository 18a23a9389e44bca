"""Pictures without a table: captions beside them, splits by their first folders."""

from __future__ import annotations

from pathlib import Path

from mispair.data import DataConfig, open_source
from mispair.data.readers.picture_files import PictureFiles
from tests.data.picture_samples import write_pictures
from tests.data.samples import write_lines


def test_captions_lie_beside_their_pictures(tmp_path: Path) -> None:
    write_pictures(tmp_path, ["train/x/a.png", "val/b.png", "val/c.png"])
    write_lines(tmp_path / "train/x/a.txt", ["a dog", "", "a cat"])
    write_lines(tmp_path / "val/b.txt", ["a bird"])
    pairs = PictureFiles().read(DataConfig(path=str(tmp_path)))
    assert pairs.images == ["train/x/a.png", "train/x/a.png", "val/b.png"]
    assert pairs.captions == ["a dog", "a cat", "a bird"]
    assert pairs.splits == ["train", "train", "dev"]
    assert [finding.count for finding in pairs.findings] == [1]
    assert pairs.notes == ()


def test_captions_that_lead_out_of_the_folder_are_not_read(tmp_path: Path) -> None:
    """A stranger's folder could make a private text a caption, and so a part of a page that is sent."""
    write_pictures(tmp_path / "photos", ["a.png", "b.png"])
    write_lines(tmp_path / "private.txt", ["a secret"])
    write_lines(tmp_path / "photos/b.txt", ["a dog"])
    (tmp_path / "photos/a.txt").symlink_to(tmp_path / "private.txt")
    pairs = PictureFiles().read(DataConfig(path=str(tmp_path / "photos")))
    assert (pairs.images, pairs.captions) == (["b.png"], ["a dog"])
    assert "'a.txt'" in pairs.findings[0].text
    assert "--allow-outside" in pairs.findings[0].text
    allowed = PictureFiles().read(DataConfig(path=str(tmp_path / "photos"), allow_outside=True))
    assert allowed.captions == ["a secret", "a dog"]


def test_pictures_of_which_nothing_is_said(tmp_path: Path) -> None:
    write_pictures(tmp_path, ["a.png", "b.png"])
    pairs = PictureFiles().read(DataConfig(path=str(tmp_path)))
    assert (pairs.images, pairs.captions, pairs.splits) == (["a.png", "b.png"], None, None)
    assert "holds pictures and no captions" in pairs.notes[0]
    assert not pairs.findings


def test_captions_that_nobody_named_are_a_finding(tmp_path: Path) -> None:
    """Two tables beside the pictures: neither is guessed, and nobody is told that all is well."""
    write_pictures(tmp_path / "images", ["a.png"])
    (tmp_path / "annotations").mkdir()
    for name in ("a.csv", "b.csv", "val.csv.gz", "annotations/captions_val2014.json", ".hidden.csv"):
        (tmp_path / name).touch()
    source = open_source(DataConfig(path=str(tmp_path)), "all")
    (finding,) = source.findings
    assert finding.kind == "captions not read"
    assert "4 files" in finding.text
    assert "a.csv, annotations/captions_val2014.json, b.csv ..." in finding.text
    assert "unpack" in finding.text
