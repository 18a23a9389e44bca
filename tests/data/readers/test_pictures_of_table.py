"""Where the pictures of a table are looked for when nobody says it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mispair.data import DataConfig, open_source
from mispair.data.readers.pictures_of_table import find_pictures
from mispair.errors import InputError
from tests.data.picture_samples import picture, write_pictures, write_tar


@pytest.mark.parametrize("beside", ["", "images/", "photos/", "train2017/", "flickr30k-images/"])
def test_pictures_lie_beside_the_table(tmp_path: Path, beside: str) -> None:
    write_pictures(tmp_path, [f"{beside}a.png", f"{beside}b.png"])
    table = tmp_path / "pairs.csv"
    index = find_pictures(DataConfig(path=str(table)), table, ["http://x/y.png", "b\0.png", "b.png", "a.png"])
    assert index is not None
    assert index.places == {"a.png": "a.png", "b.png": "b.png"}


def test_pictures_lie_in_tars_beside_the_table_or_nowhere(tmp_path: Path) -> None:
    table = tmp_path / "pairs.csv"
    config = DataConfig(path=str(table))
    assert find_pictures(config, table, ["http://x/y.png"]) is None
    write_tar(tmp_path / "0.tar", {"a.png": picture()})
    index = find_pictures(config, table, ["a.png"])
    assert index is not None
    assert list(index.select(["a.png"])) == [picture()]
    assert find_pictures(config, table, ["b.png"]) is None


def test_an_archive_left_beside_the_pictures_does_not_hide_them(tmp_path: Path) -> None:
    """Of the folder and the tars in it those are taken that have more of the names."""
    write_pictures(tmp_path / "photos", ["a.png", "deep/b.png", "c.png"])
    write_tar(tmp_path / "photos" / "some.tar", {"a.png": picture(7)})
    config = DataConfig(path=str(tmp_path / "pairs.csv"), images=str(tmp_path / "photos"))
    index = find_pictures(config, tmp_path / "pairs.csv", ["a.png", "b.png", "c.png"])
    assert index is not None
    assert list(index.select(["a.png", "b.png", "c.png"])) == [picture(0), picture(1), picture(2)]
    index = find_pictures(config, tmp_path / "pairs.csv", ["a.png"])
    assert index is not None
    assert list(index.select(["a.png"])) == [picture(7)]


@pytest.mark.parametrize("inside", [False, True])
def test_pictures_of_coco_lie_beside_the_folder_of_its_captions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: bool
) -> None:
    """A folder for each split; and `.` is the folder one stands in."""
    write_pictures(tmp_path, ["train2017/a.png", "val2017/b.png", "other/c.png"])
    (tmp_path / "annotations").mkdir()
    for split, picture_name in (("train", "a.png"), ("val", "b.png")):
        content = {
            "images": [{"id": 1, "file_name": picture_name}],
            "annotations": [{"id": 1, "image_id": 1, "caption": "a dog"}],
        }
        (tmp_path / f"annotations/captions_{split}2017.json").write_text(json.dumps(content))
    monkeypatch.chdir(tmp_path / "annotations" if inside else tmp_path)
    source = open_source(DataConfig(path="." if inside else "annotations"), "all")
    assert source.pictures is not None
    assert list(source.pictures) == [picture(0), picture(1)]
    (note,) = source.notes
    assert note.startswith("COCO captions from")
    assert find_pictures(DataConfig(), tmp_path / "other/pairs.csv", ["a.png"]) is None, (
        "elsewhere nothing is looked for"
    )


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("header", ["image", "image_id,filepath"])
def test_a_row_that_names_no_picture_is_one_whose_picture_is_missing(tmp_path: Path, header: str, packed: bool) -> None:
    """A crawl leaves such rows; what becomes of them is said by `missing`, as of any picture that is not there."""
    names = ["a.png", "b.png", "c.png"]
    write_tar(tmp_path / "x.tar", dict(zip(names, map(picture, range(3)), strict=True)))
    write_pictures(tmp_path / "photos", names)
    table = tmp_path / "pairs.csv"
    rows = [f"{k},{name}" if "," in header else name for k, name in enumerate(["a.png", "", "b.png", " ", "c.png"])]
    table.write_text(f"{header},caption\n" + "".join(f"{row},number {k}\n" for k, row in enumerate(rows)))
    config = DataConfig(path=str(table), images=str(tmp_path / ("x.tar" if packed else "photos")))
    source = open_source(config, "all")
    assert source.captions == ["number 0", "number 2", "number 4"]
    finding = next(finding for finding in source.findings if finding.left_out)
    assert finding.rows == (3, 5)
    assert "no picture is named" in finding.text


def test_a_row_that_names_nothing_has_no_features_to_be_found_by(tmp_path: Path) -> None:
    np.save(tmp_path / "pairs.npy", np.ones((2, 4), np.float32))
    table = tmp_path / "pairs.csv"
    table.write_text("image,caption\na,one\n,two\n")
    with pytest.raises(InputError, match="line 3: column 'image' holds nothing"):
        open_source(DataConfig(path=str(table)), "all")
    (tmp_path / "pairs_ids.txt").write_text("b\na\n")
    source = open_source(DataConfig(path=str(table)), "all")
    assert source.captions == ["one"]
    assert next(finding.rows for finding in source.findings if finding.left_out) == (3,)
