"""Tables several verbs print."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mispair.recall_keys import HEADINGS, RECALLS

if TYPE_CHECKING:
    from rich.table import Table

    from mispair.data import DataConfig


def recall_caution(data: DataConfig) -> str | None:
    """What to know of recalls on pairs that nobody vouches for; None where they are generated, or where only
    train was mismatched on purpose, as the page of the run has it."""
    if data.path == "scenes" or data.noise is not None:
        return None
    return (
        "Nobody vouches for these pairs: where one is mismatched a right answer counts as wrong, so take the recalls as"
        " a lower bound."
    )


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
