"""A whole experiment from Python: cells, then the table."""

import pytest

import mispair as mp
from tests.experiments.grids import write_spec


def test_an_experiment_from_python(tmp_path):
    heard = []
    spec = str(write_spec(tmp_path))
    only = ["row=plain", "column=0.2"]
    table = mp.run_experiment(spec, tmp_path / "out", seeds=1, only=only, say=heard.append)
    assert "| plain" in table
    assert any("plain 0.2 seed 0" in line for line in heard)
    assert (tmp_path / "out" / "tables" / "tiny.md").read_text() == table
    assert mp.run_experiment(spec, tmp_path / "out", seeds=1, only=only) == table  # finished cells stay


def test_mistakes_are_input_errors(tmp_path):
    with pytest.raises(mp.InputError, match="nowhere does not exist"):
        mp.run_experiment(str(write_spec(tmp_path)), tmp_path / "out", data="nowhere", kind="scenes")
    assert not (tmp_path / "out").exists()
