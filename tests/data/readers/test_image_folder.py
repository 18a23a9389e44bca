"""Image folders with splits whose pictures lie elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from mispair.data import DataConfig, open_source
from tests.data.picture_samples import picture, write_pictures, write_tar
from tests.data.samples import write_lines


@pytest.mark.parametrize("where", ["photos", "photos.tar"])
def test_pictures_of_the_splits_lie_where_somebody_says(tmp_path: Path, where: str) -> None:
    names = ["a.png", "b.png", "deep/c.png"]
    if where == "photos":
        write_pictures(tmp_path / where, names)
    else:
        write_tar(tmp_path / where, {name: picture(k) for k, name in enumerate(names)})
    for split, rows in (("train", (0, 2)), ("test", (1,))):
        (tmp_path / "data" / split).mkdir(parents=True)
        write_lines(tmp_path / "data" / split / "metadata.csv", ["file_name,text", *(f"{names[k]},{k}" for k in rows)])
    config = DataConfig(path=str(tmp_path / "data"), images=str(tmp_path / where))
    for split, rows in (("train", (0, 2)), ("test", (1,))):
        source = open_source(config, split)
        assert source.image_ids == [f"{split}/{names[k]}" for k in rows]
        assert source.pictures is not None
        assert list(source.pictures) == [picture(k) for k in rows]
