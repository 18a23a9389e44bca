"""`mispair runs`: the runs of a folder, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mispair.counted import counted

if TYPE_CHECKING:
    from rich.table import Table

_WIDE = 110  # columns of a terminal that holds everything


def runs(
    folder: Path = typer.Argument(Path("runs"), help="A folder that holds run folders."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of the table."),
) -> None:
    """Compare runs in one table: what they are, how far they came, what they reached."""
    import json

    from mispair.workflows.list_runs import list_runs

    listed = list_runs(folder, lambda why: typer.echo(f"left out: {why}", err=True))
    if as_json:
        typer.echo(json.dumps(listed))
        return
    from rich.console import Console

    from mispair.cli.whole_table import print_whole

    console = Console()
    print_whole(console, _table(listed, str(folder), wide=console.width >= _WIDE))


def _table(listed: list[dict[str, Any]], folder: str, wide: bool) -> Table:
    """One row per run, best first. A narrow terminal gets fewer columns: a figure is never cut."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    title = f"{counted(len(listed), 'run')} in {escape(folder)}"
    table = Table(title=title, title_justify="left", box=box.HEAVY_HEAD if wide else box.SIMPLE_HEAD)
    rows = []
    for run in sorted(listed, key=lambda r: -(r["test_rsum"] or r["dev_rsum"] or 0)):
        protocol = (run["protocol"] or "").removesuffix(" protocol") if wide else ""
        rows.append(
            {
                "run": escape(run["run"]),
                "method": run["method"],
                "model": run["model"],
                "noise": f"{_number(run['noise'], 2)} {protocol}".strip(),
                "dev rSum": _number(run["dev_rsum"], 1),
                "test rSum": _number(run["test_rsum"], 1),
                "est. rate": _number(run["estimated_rate"], 3),
                **({"networks": _number(run["networks"], 0), "passes": _number(run["passes"], 1)} if wide else {}),
                "epochs": f"{run['epochs_done']}/{run['epochs']}{'' if run['finished'] else ' ...'}",
            }
        )
    for heading in rows[0]:
        words = heading in ("run", "method", "model")
        shown = heading if wide else heading.replace(" rSum", "").replace("est. ", "")
        if heading == "run":
            table.add_column(shown, overflow="fold", min_width=8)
            continue
        longest = max(len(shown), *(len(row[heading]) for row in rows))
        table.add_column(shown, justify="left" if words else "right", no_wrap=True, min_width=longest)
    for row in rows:
        table.add_row(*row.values())
    if not all(run["finished"] for run in listed):
        table.caption, table.caption_justify = "... not finished", "left"
    return table


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
