"""A list of pairs takes weights from a file beside it; of pictures on the web it says what to do."""

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


def test_of_addresses_on_the_web_it_is_said_how_to_get_the_pictures(tmp_path: Path) -> None:
    rows = [f"https://example.org/{k}.jpg,a dog" for k in range(3)]
    source = open_source(DataConfig(path=str(write_lines(tmp_path / "laion.csv", ["url,caption", *rows]))), "all")
    (note,) = [note for note in source.notes if "no pictures" in note]
    assert "addresses on the web are not fetched: download them with img2dataset" in note
    source = open_source(DataConfig(path=str(write_lines(tmp_path / "p.csv", ["file,caption", "a.jpg,a dog"]))), "all")
    assert not any("img2dataset" in note for note in source.notes)
