"""Tar shards with a second side: the vectors of captions that leave leave too."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mispair.auditing.fixing.actions import Fix
from mispair.auditing.fixing.judged_data import JudgedData
from mispair.auditing.fixing.write import write_fixed
from mispair.data import DataConfig
from mispair.data.splits import open_pairs
from tests.data.picture_samples import picture, write_tar


def test_the_second_side_goes_along(tmp_path: Path) -> None:
    members: dict[str, bytes] = {}
    for k in range(4):
        members |= {f"{k}.png": picture(k), f"{k}.txt": f"words {k}".encode()}
    tar = write_tar(tmp_path / "data" / "0.tar", members)
    np.save(tmp_path / "texts.npy", np.arange(4, dtype=np.float32)[:, None] + np.zeros((4, 3), np.float32))
    config = DataConfig(path=str(tar), second=str(tmp_path / "texts.npy"))
    judged = JudgedData(config, *open_pairs(config, "all"))
    write_fixed(judged, Fix("rematch", np.array([0, 1, 3]), np.array([1, 0, 3])), tmp_path / "fixed")
    assert np.load(tmp_path / "fixed" / "texts.npy")[:, 0].tolist() == [1, 0, 3]
