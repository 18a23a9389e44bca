"""`mispair encoders`: what turns pictures and texts into numbers, and what of it is on this machine."""

from __future__ import annotations

import typer


def encoders(
    as_json: bool = typer.Option(False, "--json", help="Print one JSON list instead of the table."),
) -> None:
    """List the encoders: what each is good for, size, licence, where its weights come from, whether they are here.

    Any other model of these kinds goes by its hub id or by the path of a folder of weights; A+B takes the pictures of
    A and the texts of B.
    """
    import json
    from dataclasses import asdict

    from mispair.encoders.registry import list_encoders

    known = list_encoders()
    if as_json:
        typer.echo(json.dumps([asdict(about) for about in known], indent=2))
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title="Encoders", title_justify="left")
    for heading in ("encoder", "good for", "one space", "size", "licence", "weights from", "here"):
        table.add_column(heading, justify="right" if heading == "size" else "left", overflow="fold")
    for about in known:
        table.add_row(
            escape(about.name), escape(about.good_for), {True: "yes", False: "no", None: ""}[about.joint],
            f"{about.megabytes:,} MB" if about.megabytes else "", escape(about.licence), escape(about.source),
            "[green]yes[/green]" if about.here else "no",
        )  # fmt: skip
    console = Console()
    console.print(table)
    console.print(
        "One space: pictures and texts can be compared without training. docs/encoders.md says which to take."
    )
    for about in known:
        if about.remedy:
            console.print(f"For {about.name}: {escape(about.remedy)}", highlight=False, soft_wrap=True)
