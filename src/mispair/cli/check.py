"""`mispair check`: read a data set once and say what is in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from mispair.cli.options import data as data_options
from mispair.cli.options.grouping import grouped
from mispair.counted import counted

if TYPE_CHECKING:
    from mispair.data.inspection.check import Inspection

SHOWN = 20  # of the pictures that cannot be used


@grouped
def check(
    data: str = data_options.DATA,
    second: str | None = data_options.SECOND,
    sides: str = data_options.SIDES,
    noise: str | None = typer.Option(None, help="A noise index (.npy) to check against the train split."),
    vocabulary: str | None = typer.Option(None, help="A vocabulary (.json) to check against the captions."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON for machines instead of tables."),
    *,
    table: data_options.TableOptions,
    pictures: data_options.PictureOptions,
) -> None:
    """Read a data set once and say what is in it, and what to look at before training.

    Exit code 0: clean. 1: there are findings. 2: it cannot be used, and one sentence says why.

    Examples:

      mispair check f30k_precomp

      mispair check photos                              a folder, a tar or a Parquet of pictures

      mispair check pairs.csv --images photos

      mispair check pairs.parquet --features images.npy --ids images.txt

      mispair check audio.npy notes.npy --sides audio,notes
    """
    from mispair.cli.progress import ProgressLine
    from mispair.data.inspection.check import check_data

    config = data_options.data_config(
        path=data,
        second=second,
        **table.section(),
        **pictures.section(),
        sides=sides,
        vocabulary=vocabulary,
    )
    with ProgressLine() as progress:
        inspection = check_data(config, noise, progress)
    if as_json:
        _print_json(data, inspection)
    else:
        _print_tables(inspection)
    raise typer.Exit(1 if inspection.findings else 0)


def _print_json(data: str, inspection: Inspection) -> None:
    import json
    from dataclasses import asdict

    content = {"data": data, "usable": True, "clean": not inspection.findings, **asdict(inspection)}
    print(json.dumps(_plain(content), indent=2, allow_nan=False))


def _plain(value: object) -> object:
    """JSON has no NaN: a range without a single finite number becomes null."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and value != value else value


def _print_tables(inspection: Inspection) -> None:
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(soft_wrap=True)
    # a file name may hold bytes that are no text
    name = inspection.name.encode(errors="replace").decode()
    table = Table(title=escape(name), title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("")
    for split in inspection.splits:
        table.add_column(escape(split.split), justify="right")
    for heading, cells in _rows(inspection):
        table.add_row(heading, *cells)
    Console(width=None if console.is_terminal else 160).print(table)
    for note in inspection.notes:
        console.print(f"note: {escape(note)}", style="dim", highlight=False)
    for finding in inspection.findings:
        console.print(
            f"[yellow]{escape(finding.kind)}[/yellow] ({finding.count:,}): {escape(finding.text)}", highlight=False
        )
    for line in _unusable(inspection):
        console.print(escape(line), highlight=False)
    total = len(inspection.findings)
    console.print("[green]clean: no findings" if not total else counted(total, "finding"))


def _unusable(inspection: Inspection) -> list[str]:
    """The pictures that are missing or broken, one a line with the reason."""
    whole = {name: reason for split in inspection.splits for name, reason in split.unusable.items()}
    lines = [f"  {name.encode(errors='replace').decode()}: {reason}" for name, reason in whole.items()]
    more = [f"  ... and {len(lines) - SHOWN:,} more; --json lists all"] if len(lines) > SHOWN else []
    return lines[:SHOWN] + more


def _rows(inspection: Inspection) -> list[tuple[str, list[str]]]:
    splits = inspection.splits
    rows: list[tuple[str, list[str]]] = []
    if any(split.words or split.sides for split in splits):
        rows += [
            ("pairs", [f"{split.pairs:,}" for split in splits]),
            ("images", [f"{split.images:,}" for split in splits]),
            ("captions per image", [_span(*split.captions_per_image) for split in splits]),
        ]
    if any(split.words for split in splits):
        rows += [
            ("words", [f"{split.words:,}" for split in splits]),
            ("longest caption", [counted(split.longest, "word") for split in splits]),
            ("vocabulary", [f"{inspection.vocabulary:,}" if k == 0 else "" for k in range(len(splits))]),
        ]
    if any(split.unknown is not None for split in splits):
        rows.append(("unknown words", [f"{split.unknown or 0:.2%}" for split in splits]))
    drawn = [split.pictures for split in splits if split.pictures is not None]
    if len(drawn) == len(splits):
        rows += [
            ("pictures", [f"{facts.pictures:,}" for facts in drawn]),
            ("kinds", [", ".join(f"{kind} {count:,}" for kind, count in facts.kinds.items()) for facts in drawn]),
            ("sides", [f"{_span(facts.smallest, facts.largest)} px" for facts in drawn]),
            ("broken", [f"{facts.broken:,}" for facts in drawn]),
        ]
    for k in range(max(len(split.sides) for split in splits)):
        name = splits[0].sides[k].name
        sides = [split.sides[k] for split in splits]
        rows += [
            (f"{name} regions", [f"{side.regions:,}" for side in sides]),
            (f"{name} dimension", [f"{side.width:,}" for side in sides]),
            (f"{name} dtype", [side.dtype for side in sides]),
            (f"{name} values", [f"{side.low:.3g} to {side.high:.3g}" for side in sides]),
        ]
    return rows


def _span(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
