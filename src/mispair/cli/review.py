"""`mispair review`: a person decides, pair by pair, and what was decided counts."""

from __future__ import annotations

from pathlib import Path

import typer

from mispair.cli.serve import HOST, PICTURES, PORT, TOKEN
from mispair.counted import counted
from mispair.errors import InputError


def review(
    audit: Path = typer.Argument(..., help="An audit folder."),
    reviewer: str | None = typer.Option(None, help="Your name; otherwise the page asks for it."),
    decisions: Path | None = typer.Option(None, help="The decisions file; AUDIT/decisions.jsonl if not said."),
    export: Path | None = typer.Option(
        None, "--export", help="Write the decisions: .parquet, .csv or .json (Label Studio)."
    ),
    import_: Path | None = typer.Option(None, "--import", help="Take decisions from such a file."),
    status: bool = typer.Option(False, "--status", help="Say what was decided so far, and stop."),
    port: int = PORT,
    host: str = HOST,
    token: str | None = TOKEN,
    pictures: Path | None = PICTURES,
) -> None:
    """Look at one pair after the other and say whether it matches: 1 right, 2 wrong, 3 take the proposal, e edit.

    Blind: the page shows no probability, and one pair in ten is a control. A part of the pairs is drawn at random, so
    the answers give a valid estimate of the mismatch rate whatever the model is worth.

    Examples:

      mispair review audit --reviewer ann

      mispair review audit --status

      mispair review audit --export decisions.csv

      mispair fix audit --action drop --decisions audit/decisions.jsonl -o clean
    """
    from mispair.workflows.review import export_decisions, import_decisions, review_status

    if export is not None and import_ is not None:
        raise InputError("--export and --import are two errands: give one of them")
    if export is not None:
        typer.echo(f"{counted(export_decisions(audit, export, decisions), 'decision')} written to {export}")
        return
    if import_ is not None:
        typer.echo(f"{counted(import_decisions(audit, import_, decisions), 'new decision')} taken from {import_}")
        return
    if status:
        typer.echo(review_status(audit, decisions))
        return
    from mispair.workflows.serving import serve_review

    serve_review(
        audit, reviewer, decisions, pictures, host=host, port=port, token=token,
        say=typer.echo, warn=lambda line: typer.echo(line, err=True),
    )  # fmt: skip
