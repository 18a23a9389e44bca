"""Tables whose figures are shown whole: a terminal too narrow for them breaks the line, never the number."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def print_whole(console: Console, table: Table) -> None:
    """Print a table no narrower than the least widths of its columns."""
    least = 1 + sum((column.min_width or 1) + 3 for column in table.columns)
    if console.width < least:
        table.width = least
    console.print(table, crop=False)
