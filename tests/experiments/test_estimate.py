"""How long it will take is asked in little time, however slow the steps are."""

from __future__ import annotations

import pytest

from mispair.cli import experiments as verb
from mispair.experiments import estimate
from mispair.experiments.grid import Cell
from tests.experiments.grids import tiny_cells


@pytest.fixture
def cells(tmp_path) -> list[Cell]:
    return tiny_cells(tmp_path)


def test_slow_steps_are_taken_once_and_quick_ones_a_dozen_times(cells, monkeypatch):
    asked = []

    def epochs(config):
        asked.append(config.data.limit)
        return [pace * config.data.limit] * config.train.epochs

    monkeypatch.setattr(estimate, "_epochs", epochs)
    config = cells[0].config
    pace = 1e-3
    quick = estimate.measure(config)
    assert len(asked) == 2
    assert asked[0] < asked[1]
    pace = 1e3
    asked.clear()
    assert estimate.measure(config) == pytest.approx(1e6 * quick)
    assert len(asked) == 1


def test_an_oracle_that_leaves_most_pairs_out_is_measured_on_as_many_more(tmp_path):
    """The pairs of a measured step are those it trains on: less than a batch of them cannot be trained on at all."""
    rows = {"oracle": {"label": "oracle", "method": "plain", "set": {"data.noise.oracle": True}}}
    config = tiny_cells(tmp_path, rows=rows, only=["column=0.6"])[0].config
    assert config.data.noise.oracle
    assert estimate.measure(config) > 0


def test_rows_that_would_take_too_long_to_measure_are_named(cells, monkeypatch, capsys):
    measured = []
    monkeypatch.setattr(verb, "_MEASURING", -1.0)
    monkeypatch.setattr(estimate, "measure", lambda config: measured.append(config) or 60.0)
    verb._plan(cells, jobs=1, threads=1)
    said = capsys.readouterr()
    assert not measured
    assert "not measured, which would take too long: l2rm, plain" in said.err
    assert "?" in said.out
    assert "if the rows with ? take as long as the others" in said.out
