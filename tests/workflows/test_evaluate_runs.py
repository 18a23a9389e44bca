"""Several runs are ranked together only where they rank the same pairs."""

from __future__ import annotations

from pathlib import Path

import pytest

import mispair as mp
from mispair.workflows.train import train
from tests.synthetic import tiny_config

SHORT = ("train.epochs=1", "method.name=plain")


def test_runs_that_rank_other_pairs_are_refused(tmp_path: Path) -> None:
    train(tiny_config(*SHORT), tmp_path / "whole")
    train(tiny_config(*SHORT, "data.test_limit=5"), tmp_path / "part")
    train(tiny_config(*SHORT, "data.scenes.seed=7"), tmp_path / "others")
    whole = tmp_path / "whole"
    with pytest.raises(mp.InputError, match=r"whole ranks .* pairs of 30 images and .*part 25 pairs of 5 images; exp"):
        mp.evaluate([whole, tmp_path / "part"])
    with pytest.raises(mp.InputError, match=r"ranks .*, other ones; expected the same pairs for all runs.*--data"):
        mp.evaluate([whole, tmp_path / "others"])
    assert mp.evaluate([whole, whole])["rsum"] == mp.evaluate(whole)["rsum"]
