"""Where the pictures of a table are looked for when nobody says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mispair.data import DataConfig
from mispair.data.readers.pictures_of_table import find_pictures
from tests.data.picture_samples import picture, write_pictures, write_tar


@pytest.mark.parametrize("beside", ["", "images/", "photos/"])
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
