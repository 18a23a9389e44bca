"""`mispair experiments`: the tables and figures of the paper, as commands."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mispair.cli.options import data as data_options
from mispair.cli.options import encoding as encode_options
from mispair.cli.options.grouping import grouped

if TYPE_CHECKING:
    from mispair.experiments.grid import Cell

experiments = typer.Typer(no_args_is_help=True, help="Remake the tables and figures of the paper, on your data.")


@experiments.command("list")
def list_() -> None:
    """Say which experiments there are, and on which kinds of data."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from mispair.experiments.spec import list_specs, load_spec

    table = Table(title="Experiments", title_justify="left")
    for heading in ("name", "what", "in the paper", "rows x columns", "data"):
        table.add_column(heading)
    for path in list_specs():
        spec, _ = load_spec(str(path))
        size = f"{len(spec.rows)} x {len(spec.columns)}"
        table.add_row(*(escape(text) for text in (path.stem, spec.title, spec.shows, size, ", ".join(spec.data))))
    Console().print(table)


@experiments.command()
@grouped
def run(
    spec: str = typer.Argument(..., help="A name that 'mispair experiments list' shows, or a YAML file."),
    data: str = typer.Option("scenes", help="The data: f30k_precomp, coco_precomp, cc152k_precomp, f8k, scenes."),
    kind: str | None = typer.Option(None, "--as", help="Whose settings to take where the name of the data is none."),
    out: Path = typer.Option(..., "--out", "-o", help="Folder of the grid; the same one goes on."),
    seeds: int = typer.Option(3, min=1, help="Runs of every cell; seed s also draws the mismatches."),
    jobs: int = typer.Option(1, min=1, help="Cells at a time, one thread each."),
    threads: int = typer.Option(1, min=1, help="Threads of each cell."),
    only: list[str] = typer.Option([], help="Some cells: --only row=plain,l2rm --only column=0.4. Repeatable."),
    quick: bool = typer.Option(False, "--quick", help="A first look: one seed, one column, some rows."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Print the cells and how long they will take, run none."),
    keep: bool = typer.Option(False, "--keep", help="Keep what a finished cell no longer needs (optimizer state)."),
    redo: bool = typer.Option(False, "--redo", help="Run finished cells again whose configuration has changed."),
    *,
    columns: data_options.ColumnOptions,
    pictures: data_options.PictureOptions,
    encode: encode_options.EncodeOptions,
) -> None:
    """Run every cell of an experiment that is not finished. Stopped or killed, the same command goes on.

    Data of pictures is encoded first, into OUT/data, which all cells read.

    Examples:

      mispair experiments run main -o out/main --seeds 1                      the embedded world, minutes

      mispair experiments run main --data f30k_precomp -o out/f30k --dry-run

      mispair experiments run ablation --data f8k -o out/ablation --jobs 2

      mispair experiments run detectors --data features -o out/detectors      features: what mispair embed wrote

      mispair experiments run main --data pairs.csv --images photos --as f8k -o out/pairs
    """
    from mispair.cli.progress import Ticker
    from mispair.errors import InputError
    from mispair.experiments.encode_first import refuse_missing_data
    from mispair.experiments.run import plan_experiment, run_plan
    from mispair.experiments.spec import load_spec
    from mispair.shell_word import in_shell

    refuse_missing_data(data)
    if load_spec(spec)[0].compares == "detectors":
        of_trainings = {
            "--dry-run": dry_run, "--as": kind, "--jobs": jobs > 1, "--threads": threads > 1, "--keep": keep,
            "--redo": redo,
        }  # fmt: skip
        if said := [option for option, given in of_trainings.items() if given]:
            raise InputError(f"{spec} asks one detector after the other: leave {', '.join(said)} out")
        from mispair.experiments.detectors import run_detectors

        data = _encoded(data, out, columns, pictures, encode)
        with Ticker() as ticker:
            shown = run_detectors(spec, data, out, seeds=seeds, only=only, quick=quick, say=ticker.say)
        typer.echo(shown)
        return
    kind = load_spec(spec)[0].kind_of(data, kind)
    data = _encoded(data, out, columns, pictures, encode)
    plan = plan_experiment(spec, out, data=data, kind=kind, seeds=seeds, only=only, quick=quick)
    cells = plan.cells
    if dry_run:
        _plan(cells, jobs, threads)
        return
    with Ticker() as ticker:
        failures, stopped = run_plan(plan, ticker, jobs=jobs, threads=threads, keep=keep, redo=redo, command=_command())
    if stopped:
        typer.echo("Stopped and saved. The same command goes on.", err=True)
        raise typer.Exit(130)
    for news in failures:
        typer.echo(f"failed: {news.cell.name}: {news.text}", err=True)
    typer.echo(
        f"{len(cells) - len(failures)} of {len(cells)} cells are finished."
        f" Table: mispair experiments table {in_shell(out)}"
    )
    if failures:
        raise typer.Exit(1)


def _encoded(
    data: str,
    out: Path,
    columns: data_options.ColumnOptions,
    pictures: data_options.PictureOptions,
    encode: encode_options.EncodeOptions,
) -> str:
    from mispair.cli.progress import ProgressLine
    from mispair.experiments.encode_first import encoded_for

    config = data_options.data_config(path=data, **columns.section(), **pictures.section())
    asked = bool(columns.said() or pictures.said() or encode.encoder or encode.cells)
    with ProgressLine() as progress:
        return encoded_for(config, encode.encoding(None), asked, out, progress)


_MEASURING = 180.0  # seconds after which no further row is measured


def _plan(cells: list[Cell], jobs: int, threads: int) -> None:
    import torch
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from mispair.experiments.estimate import TimeLeft, clock, measure, past_seconds

    torch.set_num_threads(threads)
    timing, finished = TimeLeft(), 0
    for cell in cells:
        if cell.status() == "finished":
            finished += 1
            timing.finished(cell, past_seconds(cell))
    unfinished = [cell for cell in cells if cell.status() != "finished"]
    began, guessed = time.monotonic(), []
    for line, cell in {cell.line: cell for cell in reversed(unfinished)}.items():
        if line in timing.lines or cell.config is None:
            continue
        if time.monotonic() - began > _MEASURING:
            guessed.append(line)
            continue
        typer.echo(f"measuring steps of {line}", err=True)
        timing.guess(cell, measure(cell.config))
    if guessed:
        typer.echo(f"not measured, which would take too long: {', '.join(guessed)}", err=True)
    table = Table(title=f"{len(cells)} cells, {finished} finished", title_justify="left")
    for heading in ("row", "column", "seed", "state", "time"):
        table.add_column(heading, justify="right" if heading in ("seed", "time") else "left")
    for cell in cells:
        state = cell.status()
        seconds = None if state == "finished" else timing.of(cell)
        said = "?" if cell.line in guessed else "" if seconds is None else clock(seconds)
        table.add_row(escape(cell.line), escape(cell.column), str(cell.seed), state, said)
    Console().print(table)
    left = timing.left(unfinished, jobs)
    alike = " if the rows with ? take as long as the others" if guessed else ""
    typer.echo(
        f"About {clock(left or 0)} with --jobs {jobs}{alike}, from measured steps; the scoring of dev and test comes on"
        " top."
    )


@experiments.command()
def table(
    out: Path = typer.Argument(..., help="Folder of the grid."),
    form: str = typer.Option("md", "--format", help="What to print: md, csv, tex or html. All are written."),
) -> None:
    """Render what is finished as Markdown, CSV, LaTeX and HTML: mean and spread over seeds, and where it comes from."""
    from mispair.errors import InputError
    from mispair.experiments.render import FORMATS
    from mispair.experiments.run import write_tables

    if form not in FORMATS:
        raise InputError(f"--format must be one of {', '.join(FORMATS)}, got {form!r}")
    typer.echo(write_tables(out)[form])
    typer.echo(f"Written to {out / 'tables'}.", err=True)


def _command() -> str:
    """What was typed; of files only their names, for a table travels and a machine's folders do not."""
    import shlex

    return shlex.join(["mispair", *(Path(word).name if "/" in word else word for word in sys.argv[1:])])
