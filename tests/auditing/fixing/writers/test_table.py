"""How a fixed table is read again: with the features it was read with, said once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mispair.auditing.fixing.writers.table import TableWriter
from mispair.data import DataConfig
from tests.data.samples import write_lines


def test_features_are_named_once(tmp_path: Path) -> None:
    table = write_lines(tmp_path / "pairs.csv", ["image_id,caption", "a,a dog", "b,a cat"])
    np.save(tmp_path / "other.npy", np.ones((2, 3), np.float32))
    out = tmp_path / "fixed"
    words = TableWriter().arguments(DataConfig(path=str(table), features=str(tmp_path / "other.npy")), out)
    assert words == [str(out / "pairs.csv"), "--features", str(tmp_path / "other.npy")]


@pytest.mark.parametrize(("folder", "named"), [("photos", "photos"), ("", "")])
def test_pictures_are_named_by_the_folder_they_were_found_in(tmp_path: Path, folder: str, named: str) -> None:
    """Beside the table, or in a subfolder of a usual name: told the table's own, the next reader would find none."""
    table = write_lines(tmp_path / "pairs.csv", ["filepath,caption", "a.jpg,a dog", "b.jpg,a cat"])
    (tmp_path / folder).mkdir(exist_ok=True)
    for name in ("a.jpg", "b.jpg"):
        Image.new("RGB", (8, 8)).save(tmp_path / folder / name)
    words = TableWriter().arguments(DataConfig(path=str(table)), tmp_path / "fixed")
    assert words[words.index("--images") + 1] == str(tmp_path / named)
