"""Print one table of ratios: `python -m benchmarks [--only transport,ranks]`.

Every case runs on one thread, ours and the reference interleaved, best of several, in CPU seconds. Exit code 1
when a floor is not reached; one that the clock measures (work shared between cores) is not judged while other work
keeps the machine busy. The suite `processes` takes steps with one and two processes; `trust` asks whether
audits are right; `quality` trains, and a robust method must beat plain.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

import torch
from rich.console import Console
from rich.table import Table

from benchmarks import processes, quality, sources, trust
from benchmarks.timing import measure

SUITES = (
    "transport",
    "mixture",
    "ranks",
    "data",
    "encoders",
    "models",
    "audit",
    "search",
    "processes",
    "trust",
    "quality",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", default=",".join(SUITES), help=f"comma-separated, out of: {', '.join(SUITES)}")
    parser.add_argument("--match", default="", help="only paths whose name contains this: --match scoring")
    arguments = parser.parse_args()
    chosen = arguments.only.split(",")
    unknown = sorted(set(chosen) - set(SUITES))
    if unknown:
        parser.error(f"there is no suite {unknown[0]!r}; the suites are {', '.join(SUITES)}")
    torch.set_num_threads(1)
    console = Console()
    table = Table(title="mispair: CPU seconds, one thread, interleaved, best of several", title_justify="left")
    for heading in ("path", "against", "theirs", "ours", "ratio", "floor", "quality"):
        table.add_column(heading, justify="right" if heading in ("theirs", "ours", "ratio", "floor") else "left")
    missed = 0
    for suite in (name for name in chosen if name not in ("processes", "trust", "quality")):
        for case in import_module(f"benchmarks.{suite}").cases():
            if arguments.match not in case.path:
                continue
            with console.status(f"{suite}: {case.path}"):
                timing = measure(case)
            broken = timing.broken(case)
            missed += broken
            colour = "red" if broken else "green" if timing.ratio >= case.floor else "yellow"
            table.add_row(
                case.path,
                case.against + (f" ({case.note})" if case.note else ""),
                _seconds(timing.reference),
                _seconds(timing.ours),
                f"[{colour}]{timing.ratio:.1f}x",
                f"{case.floor:g}x",
                timing.quality if colour != "yellow" else f"not judged: others kept {timing.others:.1f} cores busy",
            )
    if table.rows:
        console.print(table)
    if "processes" in chosen:
        missed += processes.report(console)
    if "trust" in chosen:
        missed += trust.report(console)
    if "quality" in chosen:
        missed += quality.report(console)
    console.print(sources.show())
    return 1 if missed else 0


def _seconds(value: float) -> str:
    return f"{value * 1e3:.2f} ms" if value < 1 else f"{value:.2f} s"


if __name__ == "__main__":
    sys.exit(main())
