"""Which cells of a grid are finished, and what is known about each? Read once, asked by tables and figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mispair.experiments.grid import Line, columns, lines
from mispair.experiments.published import Fact, facts_of
from mispair.experiments.results import CellResult, Figure, figure, read_cell
from mispair.experiments.spec import Evaluation, Spec


@dataclass(frozen=True)
class Grid:
    """Everything read; lines and columns are those of which something is finished."""

    out: Path
    spec: Spec
    kind: str
    lines: list[Line]
    columns: list[str]
    results: dict[tuple[str, str], dict[int, CellResult]]  # by line and column, then seed

    def of(self, line: Line, column: str) -> dict[int, CellResult]:
        return self.results.get((line.key, column), {})

    def figures(self, line: Line, column: str, metric: str, gallery: int = 0) -> Figure | None:
        scored = [result.galleries for result in self.of(line, column).values()]
        return figure([galleries[gallery][1][metric] for galleries in scored if len(galleries) > gallery])

    def facts(self, column: str, gallery: int = 0) -> list[Fact]:
        said = self.spec.columns[column].published
        tables = self.evaluations[gallery].published or self.spec.published
        return facts_of(tables, self.kind, column if said is None else said)

    def label(self, column: str) -> str:
        return self.spec.columns[column].label or column

    @property
    def evaluations(self) -> tuple[Evaluation, ...]:
        return self.spec.data[self.kind].evaluate

    def first_runs(self) -> Iterator[tuple[str, Path]]:
        """The run of the first finished seed of every line and column, with its name."""
        for line in self.lines:
            for column in self.columns:
                for seed in sorted(self.of(line, column))[:1]:
                    yield f"{line.label}, {self.label(column)}", self.out / "cells" / line.key / column / f"seed-{seed}"


def read_grid(out: Path, spec: Spec, kind: str, seeds: int) -> Grid:
    """The results of all finished cells in `out`, for the rows of which there are any."""
    how = spec.data[kind]
    results: dict[tuple[str, str], dict[int, CellResult]] = {}
    for line in lines(spec, how):
        for column in columns(spec, how):
            for seed in range(seeds):
                result = read_cell(out / "cells" / line.key / column / f"seed-{seed}")
                if result is not None:
                    results.setdefault((line.key, column), {})[seed] = result
    present = [line for line in lines(spec, how) if any(key == line.key for key, _ in results)]
    shown = [column for column in columns(spec, how) if any(key == column for _, key in results)]
    return Grid(out, spec, kind, present, shown, results)


def shown_name(line: Line) -> str:
    """What a table calls the line; one that knows the truth is marked."""
    return f"{line.label} (knows the truth)" if line.row.knows_truth else line.label
