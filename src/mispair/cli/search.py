"""`mispair search`: pictures by words, captions by a picture, pairs like a pair."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mispair.errors import InputError

if TYPE_CHECKING:
    from mispair.searching.index import Index
    from mispair.searching.query import SearchResult


def search(
    index: Path = typer.Argument(..., help="An index folder (mispair index)."),
    text: str | None = typer.Argument(None, help="What to look for, in words."),
    image: Path | None = typer.Option(None, "--image", help="Instead: a picture to look for."),
    pair: int | None = typer.Option(None, "--pair", help="Instead: what is like this pair."),
    count: int = typer.Option(10, "-k", "--count", min=1, max=200, help="How many answers."),
    captions: bool = typer.Option(False, "--captions", help="Find captions instead of pictures."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    html: Path | None = typer.Option(None, "--html", help="Write the answers as a page with pictures."),
    thumbnails: str = typer.Option(
        "auto", help="Pictures in the terminal: auto (where it can), none, kitty, iterm2, sixel or blocks."
    ),
) -> None:
    """Find the nearest pictures or captions.

    Examples:

      mispair search index "two dogs in the snow" -k 5

      mispair search index --pair 123 --captions

      mispair search index "a red circle" --html found.html
    """
    from mispair.workflows.searchable_index import SearchableIndex

    asked = [name for name, value in (("words", text), ("--image", image), ("--pair", pair)) if value is not None]
    if len(asked) != 1:
        raise InputError(f"ask by words, --image or --pair; got {' and '.join(asked) or 'none of them'}")
    from mispair.pictures.terminal import WAYS

    if thumbnails not in ("auto", "none", *WAYS):
        raise InputError(f"--thumbnails is auto, none, {', '.join(WAYS)}; got {thumbnails!r}")
    opened = SearchableIndex.open(index)
    result = opened.search(image if text is None else text, count, "texts" if captions else "images", pair=pair)
    if not as_json and not captions:
        _draw(result, opened, thumbnails)
    _show(result, opened.folder, as_json, html, text or (image.name if image else f"pair {pair}"))


def _draw(result: SearchResult, index: Index, asked: str) -> None:
    """Thumbnails above the table, in its order, where the terminal shows pictures and the data has them."""
    import os
    import shutil
    import sys

    from mispair.pictures.terminal import WAYS, Way, ask_terminal, find_way, thumbnails

    way: Way | None = next((known for known in WAYS if known == asked), None)
    if asked == "auto":
        way = find_way(os.environ, sys.stdout)
        if way == "blocks" and sys.stdin.isatty():  # it may know better: ask
            way = find_way(os.environ, sys.stdout, ask_terminal(sys.stdin.fileno(), sys.stdout.fileno()))
    if way is None:
        return
    from mispair.workflows.search import data_of
    from mispair.workflows.site import pictures_of_index

    config = data_of(index)
    if config is None:
        return
    pictures = pictures_of_index(index, config, names=[hit.image_path for hit in result.hits])
    files = [pictures.read(hit.image_path) for hit in result.hits]
    if any(file is not None for file in files):
        sys.stdout.write(thumbnails(files, way, shutil.get_terminal_size().columns))
        sys.stdout.flush()


def _show(result: SearchResult, index: Path, as_json: bool, html: Path | None, asked: str) -> None:
    import json
    from dataclasses import asdict

    if html is not None:
        from mispair.atomic import write_text
        from mispair.workflows.search_page import search_page

        write_text(html, search_page(result, index, asked))
        typer.echo(f"Page: {html}", err=as_json)
    if as_json:
        typer.echo(json.dumps({"answers": [asdict(hit) for hit in result.hits], "notes": result.notes}))
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(soft_wrap=False)
    for note in result.notes:
        console.print(f"[yellow]note:[/yellow] {escape(note)}", soft_wrap=True)
    table = Table()
    for heading in ("pair", "score", "picture", "caption"):
        table.add_column(heading, justify="right" if heading in ("pair", "score") else "left", overflow="fold")
    for hit in result.hits:
        shown = ("".join(c if c.isprintable() else "\ufffd" for c in t)[:300] for t in (hit.image_path, hit.caption))
        table.add_row(str(hit.pair), f"{hit.score:.3f}", *(escape(text) for text in shown))
    console.print(table)
