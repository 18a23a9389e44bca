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
    """Recalls of each named row, for `print_whole`."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(title), title_justify="left")
    table.add_column("", overflow="fold", min_width=min(8, max(map(len, rows), default=0)))
    for heading in HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True, min_width=max(len(heading), len("100.0")))
    for name, metrics in rows.items():
        table.add_row(escape(name), *(f"{metrics[key]:.1f}" for key in RECALLS))
    collapsed = [name for name, metrics in rows.items() if metrics.get("collapsed")]
    if collapsed:
        table.caption_justify = "left"
        table.caption = f"[red]{escape(', '.join(collapsed))} collapsed: the scores do not tell candidates apart[/red]"
    return table
