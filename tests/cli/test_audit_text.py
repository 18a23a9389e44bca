"""What an audit prints: in a terminal of 80 columns a pair can be found by what its row shows."""

from __future__ import annotations

import io
import shlex
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console

from mispair.auditing.facts import RematchTrial
from mispair.auditing.verdicts import Verdicts
from mispair.cli.audit_text import _look_table, print_verdicts
from tests.report.samples import audit_of

NAME = "computer/icons/lemon-theme/actions/player_play.png"


def test_the_name_of_a_picture_is_not_cut_off() -> None:
    verdicts = audit_of(40, ["Part of a collection of icons (Wed Aug 25 23:23:49 2004)"])
    table = verdicts.table
    place = table.schema.get_field_index("image_id")
    named = table.set_column(place, table.schema.field(place), pa.array([NAME] * 40))
    out = io.StringIO()
    Console(file=out, width=80).print(_look_table(Verdicts(named, verdicts.facts).look(1)))
    rows = [line.split("│") for line in out.getvalue().splitlines() if line.startswith("│")]
    assert "".join(row[2].strip() for row in rows) == NAME


def test_the_next_command_is_the_recommended_one_and_can_be_pasted(capsys: pytest.CaptureFixture[str]) -> None:
    verdicts = audit_of(400)
    trial = RematchTrial(50, 0.9, 1.0, 0.1, 1.0, (0.2, 0.9), (1.0, 1.0))
    print_verdicts(
        Verdicts(verdicts.table, replace(verdicts.facts, rematch=trial)), Path("my audit [2]"), None, as_json=False
    )
    said = capsys.readouterr().out.rstrip().splitlines()
    assert said[-2].endswith("Recommended: --action rematch.")
    report, fix = (shlex.split(command) for command in said[-1].removeprefix("Next: ").split(", or "))
    assert report == ["mispair", "report", "my audit [2]"]
    assert fix == ["mispair", "fix", "my audit [2]", "--action", "rematch", "-o", "fixed"]
