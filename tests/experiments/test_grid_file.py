"""experiment.json is read through one typed door: what no grid writes costs one sentence, and no loop without end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mispair.errors import InputError
from mispair.experiments.grid_file import read_grid_file
from mispair.experiments.page import make_page
from mispair.experiments.runner import write_down
from mispair.experiments.spec import parse_spec
from tests.experiments.grids import tiny_spec, write_cell

GOOD: dict[str, Any] = {
    "spec": tiny_spec(), "kind": "scenes", "data": "scenes", "seeds": 1, "commands": ["mispair"], "hardware": "a",
    "versions": "b",
}  # fmt: skip


def test_what_was_written_is_read(tmp_path: Path) -> None:
    spec = parse_spec(tiny_spec(), "x")
    write_down(tmp_path, spec, "scenes", "/secret/place/scenes", 3, "mispair experiments run tiny")
    down, read = read_grid_file(tmp_path)
    assert read == spec
    assert (down.kind, down.data, down.seeds) == ("scenes", "scenes", 3)
    assert down.commands == ("mispair experiments run tiny",)


@pytest.mark.parametrize(
    "over",
    [
        {"seeds": 10**12}, {"seeds": "x"}, {"seeds": []}, {"seeds": 0}, {"seeds": 1e308}, {"kind": None}, {"kind": 3},
        {"kind": "nobody"}, {"commands": 4}, {"commands": [[1]]}, {"commands": None}, {"data": None}, {"data": 4},
        {"hardware": None}, {"versions": {}}, {"spec": []}, {"spec": {"name": "x"}},
    ],
    ids=str,
)  # fmt: skip
def test_what_no_grid_writes_costs_one_sentence(over: dict[str, Any], tmp_path: Path) -> None:
    write_cell(tmp_path, "plain", "0.2", 0, 300.0)
    values = {name: value for name, value in (GOOD | over).items() if value is not None}
    (tmp_path / "experiment.json").write_text(json.dumps(values))
    with pytest.raises(InputError, match="experiment.json is damaged; run the experiment's command again"):
        make_page(tmp_path)
    with pytest.raises(InputError, match="experiment.json is damaged"):
        write_down(tmp_path, parse_spec(tiny_spec(), "x"), "scenes", "scenes", 1, "mispair")
