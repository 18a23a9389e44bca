"""`mispair serve`: a page to search, and a REST interface, on this machine."""

from __future__ import annotations

from pathlib import Path

import typer

HOST = typer.Option("127.0.0.1", help="Where to listen; anything but this machine itself needs --token.")
PORT = typer.Option(8000, min=0, max=65535, help="0 takes any free one.")
TOKEN = typer.Option(None, help="Who may ask: at least 16 characters, sent as Authorization: Bearer.")
PICTURES = typer.Option(None, "--pictures", help="Folder of the pictures, where they do not lie beside the data.")


def serve(
    folder: Path = typer.Argument(..., help="An index, a run or an audit."),
    audit: Path | None = typer.Option(None, help="With an index or a run: the audit whose pairs can be reviewed here."),
    port: int = PORT,
    host: str = HOST,
    token: str | None = TOKEN,
    pictures: Path | None = PICTURES,
) -> None:
    """Search by words or by a picture, see neighbours, send pairs that look wrong to review.

    Examples:

      mispair serve index

      mispair serve audit --port 8080          its review too, under /review
    """
    from mispair.cli.progress import ProgressLine
    from mispair.workflows.serving import serve_folder

    with ProgressLine() as progress:

        def say(line: str) -> None:
            progress.clear()
            typer.echo(line)

        serve_folder(folder, audit, pictures, host=host, port=port, token=token, say=say, tell=progress)
