"""Recalls on a terminal: what they are measured on is said where nobody vouches for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mispair.cli.recall_table import recall_caution
from mispair.cli.train import _print_summary
from mispair.data import DataConfig
from mispair.data.config import NoiseConfig
from mispair.recall_keys import RECALLS
from tests.synthetic import tiny_config


def test_recalls_on_pairs_as_they_came_are_a_lower_bound() -> None:
    assert "lower bound" in (recall_caution(DataConfig(path="pairs.csv")) or "")
    assert recall_caution(DataConfig(path="scenes")) is None
    assert recall_caution(DataConfig(path="pairs.csv", noise=NoiseConfig(rate=0.4))) is None


def test_a_training_on_pairs_as_they_came_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    summary = {"method": "plain", "model": "vse", "test": dict.fromkeys(RECALLS, 9.3)}
    _print_summary(summary, Path("run"), tiny_config("data.path=pairs.csv"))
    assert "lower bound" in capsys.readouterr().out
    _print_summary(summary, Path("run"), tiny_config())
    assert "lower bound" not in capsys.readouterr().out
