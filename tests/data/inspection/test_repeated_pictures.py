"""A name that stands for several pictures: the first would get the captions of all of them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mispair.data import DataConfig, open_source
from mispair.data.inspection.check import check_data
from mispair.data.source import Finding
from mispair.errors import InputError
from tests.data.picture_samples import picture, write_pictures
from tests.data.samples import write_lines


def _repeats(config: DataConfig) -> list[Finding]:
    return [finding for finding in check_data(config).findings if finding.kind == "ids repeat"]


def _parquet(folder: Path, shown: list[int], names: list[str], **more: list[str]) -> DataConfig:
    images = [picture(k) for k in shown]
    table = {"jpg": images, "file_name": names, "caption": [f"words {k}" for k in range(len(names))], **more}
    pq.write_table(pa.table(table), folder / "p.parquet", row_group_size=2)
    return DataConfig(path=str(folder / "p.parquet"))


def test_names_beside_pictures_in_a_table(tmp_path: Path) -> None:
    config = _parquet(tmp_path, [0, 1, 2, 3], ["image.jpg", "image.jpg", "image.jpg", "b.jpg"])
    (finding,) = _repeats(config)
    assert finding.count == 1
    assert "1 image id stands for several pictures (first 'image.jpg'); the first of them counts" in finding.text
    assert "--image-column" in finding.text


def test_one_picture_in_a_row_for_each_of_its_captions_is_one_picture(tmp_path: Path) -> None:
    assert not _repeats(_parquet(tmp_path, [0, 0, 1, 1, 0], ["a", "a", "b", "b", "a"]))


def test_each_split_speaks_of_its_own(tmp_path: Path) -> None:
    names, splits = ["a", "b", "b", "c"], ["train", "test", "test", "train"]
    (finding,) = _repeats(_parquet(tmp_path, [0, 1, 2, 3], names, split=splits))
    assert (finding.split, finding.count) == ("test", 1)


def test_an_id_beside_several_files_of_a_table(tmp_path: Path) -> None:
    write_pictures(tmp_path, ["a.png", "b.png", "c.png"])
    rows = ["image_id,filepath,title", "1,a.png,one", "1,a.png,two", "2,b.png,three", "2,c.png,four"]
    config = DataConfig(path=str(write_lines(tmp_path / "p.csv", rows)))
    (finding,) = _repeats(config)
    assert (finding.count, finding.rows) == (1, (5,))
    assert "p.csv, line 5: 1 image id stands for several files (first '2': 'b.png' and 'c.png')" in finding.text
    assert "--image-column filepath" in finding.text
    assert not _repeats(config.model_copy(update={"columns": config.columns.model_copy(update={"image": "filepath"})}))


def test_an_id_of_two_files_in_coco_is_refused(tmp_path: Path) -> None:
    write_pictures(tmp_path, ["a.png", "b.png"])
    images = [{"id": 7, "file_name": "a.png"}, {"id": 8, "file_name": "b.png"}, {"id": 8, "file_name": "b.png"}]
    content = {"images": images, "annotations": [{"image_id": 7, "caption": "a dog"}, {"image_id": 8, "caption": "b"}]}
    path = tmp_path / "captions.json"
    path.write_text(json.dumps(content))
    assert open_source(DataConfig(path=str(path)), "all").image_ids == ["a.png", "b.png"]
    images[2]["file_name"] = "c.png"
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match="captions.json: image id 8 stands for two files, 'b.png' and 'c.png'"):
        open_source(DataConfig(path=str(path)), "all")
