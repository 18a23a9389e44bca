"""`mispair doctor`: is everything here that mispair needs?"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import typer


def doctor(
    as_json: bool = typer.Option(False, "--json", help="Print one JSON list instead of the table."),
) -> None:
    """Check this machine: Python, torch, device, memory, disk, extras; each with the remedy if it is missing.

    Exit code 0 when mispair can run, 1 when something it needs is missing.
    """
    from mispair.runtime.machine import inspect_machine

    checks = inspect_machine(Path.cwd())
    if as_json:
        import json

        typer.echo(json.dumps([asdict(check) for check in checks], indent=2))
    else:
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table

        from mispair.version import __version__

        marks = {"ok": "[green]ok[/green]", "note": "[yellow]note[/yellow]", "missing": "[red]missing[/red]"}
        table = Table(title=f"mispair {__version__}", title_justify="left", box=None, pad_edge=False)
        for heading in ("", "what", "found", "remedy"):
            table.add_column(heading, overflow="fold")
        for check in checks:
            table.add_row(marks[check.state], escape(check.name), escape(check.found), escape(check.remedy))
        Console().print(table)
    if any(check.state == "missing" for check in checks):
        raise typer.Exit(1)
