"""A whole experiment: from the name of a spec and data to finished cells, and to tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mispair.atomic import write_text
from mispair.experiments.grid import Cell
from mispair.experiments.grid import cells as make_cells
from mispair.experiments.page import make_page
from mispair.experiments.render import FORMATS
from mispair.experiments.runner import LOCK, Audience, refuse_changed, run_grid, write_down
from mispair.experiments.spec import Spec, load_spec, refuse_seeds
from mispair.experiments.workers import News
from mispair.runtime.lock import claimed


@dataclass(frozen=True)
class Plan:
    """What an experiment on this data comes to."""

    spec: Spec
    kind: str  # whose settings are taken
    data: str
    out: Path
    seeds: int
    cells: list[Cell]


def plan_experiment(
    spec: str,
    out: Path,
    *,
    data: str = "scenes",
    kind: str | None = None,
    seeds: int = 3,
    only: Sequence[str] = (),
    quick: bool = False,
) -> Plan:
    """The cells of the spec of that name, or in that file; `quick`: those of a first look, one seed."""
    chosen, path = load_spec(spec)
    which = chosen.kind_of(data, kind)
    if quick:
        seeds, only = 1, [*chosen.quick_cells(which), *only]
    refuse_seeds(seeds)
    where = data if data == "scenes" else str(Path(data).resolve())
    return Plan(chosen, which, data, out, seeds, make_cells(chosen, path, which, where, out, seeds, only))


def run_plan(
    plan: Plan,
    audience: Audience,
    *,
    jobs: int = 1,
    threads: int = 1,
    keep: bool = False,
    redo: bool = False,
    command: str = "",
) -> tuple[list[News], bool]:
    """Run the cells that are not finished. Returns the failures, and whether a signal stopped it."""
    with claimed(plan.out / LOCK, "mispair experiments run"):
        refuse_changed(plan.cells, redo)
        write_down(plan.out, plan.spec, plan.kind, plan.data, plan.seeds, command)
        return run_grid(plan.cells, jobs, keep, threads, audience)


def write_tables(out: Path) -> dict[str, str]:
    """What is finished as Markdown, CSV, LaTeX and HTML, by suffix; written to OUT/tables, with the drawings."""
    page = make_page(out)
    rendered = {suffix: render(page) for suffix, render in FORMATS.items()}
    for suffix, text in rendered.items():
        write_text(out / "tables" / f"{page.name}.{suffix}", text)
    for drawing in page.drawings:
        write_text(out / "tables" / f"{drawing.name}.svg", drawing.svg)
    return rendered


@dataclass(frozen=True)
class Listener:
    """An audience of one function, which hears what stays and not how it stands just now."""

    hear: Callable[[str], None]

    def say(self, line: str) -> None:
        self.hear(line)

    def show(self, line: str) -> None:
        """Left out: only lines that stay are handed on."""
