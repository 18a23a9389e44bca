"""`mispair report`: one page you can send."""

from __future__ import annotations

from pathlib import Path

import typer


def report(
    folder: Path = typer.Argument(..., help="A run folder, or an audit folder (mispair audit)."),
    out: Path = typer.Option(Path("report.html"), "--out", "-o", help="Where to write the page."),
    pictures: Path | None = typer.Option(None, help="Folder of the pictures, where they do not lie beside the data."),
    allow_outside: bool = typer.Option(
        False, "--allow-outside", help="Names of pictures may lead out of the folder in which they are looked up."
    ),
    rows: int = typer.Option(10_000, min=0, help="How many of the worst pairs the table holds."),
    force: bool = typer.Option(False, "--force", help="Replace the page if it exists."),
) -> None:
    """Write one self-contained HTML page: which pairs are wrong, what they should have been, and how far to trust it.

    Examples:

      mispair report runs/scenes-l2rm-vse-1

      mispair report audit/ -o audit.html --pictures /data/images
    """
    import os
    import time

    from mispair.atomic import write_text
    from mispair.errors import InputError
    from mispair.report.page import render
    from mispair.workflows.report import build_page

    if os.path.isdir(out):
        raise InputError(f"{out} is a folder; give the name of the page, such as -o {out / 'report.html'}")
    if os.path.lexists(out) and not force:
        raise InputError(f"{out} already exists; choose another name with -o, or replace it with --force")
    began = time.monotonic()
    content = build_page(
        folder,
        pictures=pictures,
        allow_outside=allow_outside,
        rows=rows,
        say=lambda what: typer.echo(what, err=True),
    )
    page = render(content)
    write_text(out, page, "write the page again")
    size = len(page.encode()) / 1e6
    typer.echo(f"{out} ({size:.1f} MB, {time.monotonic() - began:.1f} s): open it in any browser, it needs no network.")
