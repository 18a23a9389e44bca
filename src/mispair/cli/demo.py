"""`mispair demo`: the main job, on embedded data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from mispair.config.demo import Row


def demo(
    out: Path = typer.Option(Path("demo"), "--out", "-o", help="Where to put the runs; what is there is replaced."),
    pictures: int = typer.Option(2000, min=400, help="Size of the generated world."),
) -> None:
    """Mismatch 60 % of a generated world's pairs, train plainly and with L2RM, and compare.

    Same data, same noise, same budget and seed for every row; a minute or two on two cores.
    """
    import shutil
    import time

    from rich.console import Console

    from mispair.config.demo import RATE, ROWS, train_row
    from mispair.config.reporting import build_page
    from mispair.errors import InputError
    from mispair.report.page import render
    from mispair.runtime.checkpoint import write_text
    from mispair.runtime.journal import Journal

    console = Console(stderr=True)
    if out.exists() and any(out.iterdir()) and not (out / ".mispair-demo").exists():
        raise InputError(f"{out} holds something else than a demo; choose another folder with -o")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (out / ".mispair-demo").touch()
    console.print(
        f"A world of {pictures:,} pictures with five captions each; in {RATE:.0%} of the training pairs the picture "
        "is replaced by another one.",
        soft_wrap=True,
        highlight=False,
    )
    began = time.monotonic()
    rows = []
    for number, name in enumerate(ROWS, 1):
        console.print(f"[bold]{number}/{len(ROWS)} {name}[/bold]", highlight=False)
        folder = out / name.split(" (")[0].replace(", ", "-").replace(" ", "-").lower()
        rows.append(train_row(name, folder, Journal(folder / "metrics.jsonl", console, interval=10), pictures))
    console.print("Writing the report of the last one", highlight=False)
    write_text(out / "report.html", render(build_page(folder)))
    _print(rows, out, time.monotonic() - began)


def _print(rows: list[Row], out: Path, seconds: float) -> None:
    from rich.console import Console
    from rich.markup import escape

    from mispair.cli.tables import recall_table
    from mispair.config.demo import RATE

    console = Console()
    console.print(
        recall_table({row.name: row.summary["test"] for row in rows}, f"Test, trained on {RATE:.0%} mismatched pairs")
    )
    plain = max(row.summary["test"]["rsum"] for row in rows if row.name.startswith("plain"))
    bound = rows[0].summary["test"]["rsum"]
    last = rows[-1]
    reached = last.summary["test"]["rsum"]
    found, low_high = last.summary["mismatch_rate"], last.summary["mismatch_rate_ci"]
    console.print(
        f"l2rm tells mismatched pairs with AUROC {last.summary['detection']['auroc']:.3f} and estimates their share as "
        f"{found:.2f} ({low_high[0]:.2f} to {low_high[1]:.2f}); injected were {last.summary['noise']['rate']:.2f}.",
        soft_wrap=True,
        highlight=False,
    )
    if last.rematching is not None:
        console.print(
            f"{last.rematching.true:.0%} of the mass it rematches lands on captions that are true of their picture; "
            f"by chance it would be {last.rematching.chance:.0%}.",
            soft_wrap=True,
            highlight=False,
        )
    console.print(
        f"What it means: mismatched pairs cost plain training {bound - plain:.0f} of {bound:.0f} rSum points, "
        f"l2rm only {bound - reached:.0f}. Took {seconds:.0f} s. "
        f"Open {escape(str(out / 'report.html'))} to see the pairs.",
        soft_wrap=True,
        highlight=False,
    )
