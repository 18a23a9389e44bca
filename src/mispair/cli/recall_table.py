"""Tables several verbs print."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mispair.recall_keys import HEADINGS, RECALLS

if TYPE_CHECKING:
    from rich.table import Table


def recall_table(rows: Mapping[str, Mapping[str, float]], title: str) -> Table:
    """Recalls of each named row."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(title), title_justify="left")
    table.add_column("")
    for heading in HEADINGS:
        table.add_column(heading, justify="right")
    for name, metrics in rows.items():
        table.add_row(escape(name), *(f"{metrics[key]:.1f}" for key in RECALLS))
        if metrics.get("collapsed"):
            table.add_row("", "[red]collapsed: the scores do not tell candidates apart[/red]")
    return table
