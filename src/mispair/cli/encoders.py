"""`mispair encoders`: what turns pictures and texts into numbers, and what of it is on this machine."""

from __future__ import annotations

import typer


def encoders(
    as_json: bool = typer.Option(False, "--json", help="Print one JSON list instead of text."),
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
    from rich.padding import Padding

    console = Console(highlight=False)
    one_space = {True: "one space", False: "no common space", None: "one space: unknown until it is used"}
    for about in known:
        here = "[green]here[/green]" if about.here else "not here"
        size = f"{about.megabytes:,} MB" if about.megabytes else ""
        facts = [here, size, escape(about.licence), one_space[about.joint]]
        console.print(f"[bold]{escape(about.name)}[/bold]: {', '.join(filter(None, facts))}", soft_wrap=True)
        console.print(Padding(escape(about.good_for), (0, 0, 0, 4)))
        remedy = f"; for it: {about.remedy}" if about.remedy else ""
        console.print(f"    weights from {escape(about.source + remedy)}", soft_wrap=True)
    console.print(
        "One space: pictures and texts can be compared without training. docs/encoders.md says which to take."
    )
