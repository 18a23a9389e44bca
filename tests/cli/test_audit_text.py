"""What an audit prints: in a terminal of 80 columns a pair can be found by what its row shows."""

from __future__ import annotations

import io

import pyarrow as pa
from rich.console import Console

from mispair.auditing.verdicts import Verdicts
from mispair.cli.audit_text import _look_table
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
