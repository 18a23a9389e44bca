"""`mispair methods`: which methods there are, what they cost, and what they do with a mismatched pair."""

from __future__ import annotations

import typer


def methods(
    as_json: bool = typer.Option(False, "--json", help="Print one JSON list instead of the table."),
) -> None:
    """List the methods: paper, year, networks, cost relative to plain, and what becomes of a mismatched pair.

    The cost is counted, not timed: forward-backward passes over the pairs by all networks together, a forward pass
    alone counting a third, measured on configs/demo (14 epochs, 60 % mismatched) and divided by that of plain.

    Example: mispair train --noise 0.6 --method ncr
    """
    import json
    from dataclasses import asdict

    from mispair.methods import METHODS

    classes, problems = METHODS.everybody()
    known = [cls.about for cls in classes.values()]
    for problem in problems:
        typer.echo(problem, err=True)
    if as_json:
        typer.echo(json.dumps([asdict(method) for method in known], indent=2))
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title="Methods, for mispair train --method", title_justify="left")
    for heading in ("method", "paper", "year", "networks", "cost", "a mismatched pair"):
        number = heading in ("year", "networks", "cost")
        table.add_column(heading, justify="right" if number else "left", overflow="fold")
    for method in known:
        paper = f"{method.paper} ({method.venue})"
        table.add_row(
            method.name, escape(paper), str(method.year), str(method.networks), f"{method.cost:.1f}x",
            escape(method.mismatched),
        )  # fmt: skip
    Console().print(table)
    variants = [name for cls in classes.values() for name in cls.presets]
    typer.echo(f"Variants of the same, for --method too: {', '.join(variants)} (as written, as released; PAPERS.md).")
