"""Recalls on a terminal: what they are measured on is said where nobody vouches for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from mispair.cli.recall_table import recall_caution, recall_table
from mispair.cli.runs import runs
from mispair.cli.train import _print_summary
from mispair.cli.whole_table import print_whole
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


@pytest.mark.parametrize("columns", ["80", "40"])
def test_no_figure_is_cut_however_narrow_the_terminal(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    metrics = {key: 12.3 + k for k, key in enumerate(RECALLS)} | {"rsum": 511.8}
    table = recall_table({"l2rm/vse + l2rm/sgr + l2rm/saf": metrics, "poor": metrics | {"collapsed": True}}, "test")
    print_whole(Console(), table)
    shown = capsys.readouterr().out
    assert "l2rm" in shown
    assert shown.count("511.8") == 2
    assert shown.count("12.3") == shown.count("17.3") == 2
    assert "poor collapsed" in " ".join(shown.split())


@pytest.mark.parametrize("columns", ["80", "40"])
def test_no_figure_of_runs_is_cut_either(
    columns: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    run = {
        "run": "a-run-of-friday-with-a-long-name", "method": "l2rm", "model": "vse", "noise": 0.4, "protocol": None,
        "dev_rsum": 581.2, "test_rsum": 432.1, "estimated_rate": 0.273, "networks": 1, "passes": 3.0,
        "epochs_done": 20, "epochs": 20, "finished": True,
    }  # fmt: skip
    monkeypatch.setattr("mispair.workflows.list_runs.list_runs", lambda folder, tell: [run])
    runs(tmp_path, as_json=False)
    shown = capsys.readouterr().out
    assert "a-run" in shown
    assert all(figure in shown for figure in ("0.40", "581.2", "432.1", "0.273", "20/20"))
