"""A list of pairs without a column of weights takes them from a file beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mispair.data import DataConfig, open_source
from tests.data.samples import write_lines


def test_weights_lie_beside_the_list(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.token", [f"{k}.jpg#0\ta dog" for k in range(3)])
    np.save(tmp_path / "trust.npy", np.array([0.5, 0, 2]))
    weights = open_source(DataConfig(path=str(path), weights="trust"), "all").weights
    assert weights is not None
    assert weights.tolist() == [0.5, 0, 2]
