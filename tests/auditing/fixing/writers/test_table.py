"""How a fixed table is read again: with the features it was read with, said once."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mispair.auditing.fixing.writers.table import TableWriter
from mispair.data import DataConfig
from tests.data.samples import write_lines


def test_features_are_named_once(tmp_path: Path) -> None:
    table = write_lines(tmp_path / "pairs.csv", ["image_id,caption", "a,a dog", "b,a cat"])
    np.save(tmp_path / "other.npy", np.ones((2, 3), np.float32))
    out = tmp_path / "fixed"
    words = TableWriter().arguments(DataConfig(path=str(table), features=str(tmp_path / "other.npy")), out)
    assert words == [str(out / "pairs.csv"), "--features", str(tmp_path / "other.npy")]
