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
    from mispair.serve.app import require_fastapi, run_server
    from mispair.serve.limits import refuse_open_host
    from mispair.workflows.site import open_site

    refuse_open_host(host, token)
    require_fastapi()
    with ProgressLine() as progress:
        site = open_site(folder, audit, pictures, progress)
    run_server(site, host, port, token, lambda address: _ready(address, token, "", "Search"))


def _ready(address: str, token: str | None, page: str, what: str) -> None:
    where = f"{address}{page}" + (f"?token={token}" if token else "")
    typer.echo(f"{what}: {where}  (Ctrl-C ends it)")
