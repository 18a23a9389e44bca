"""From finished cells to a page of tables: who is best where, at what cost, beside what the paper printed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from mispair.experiments.grid import Line, columns, lines, same_noise
from mispair.experiments.published import Fact, facts_of
from mispair.experiments.results import HEADINGS, RECALLS, Figure, Result, figure, read_cell
from mispair.experiments.runner import read_down
from mispair.experiments.spec import Evaluation, Spec, parse_spec

MISSING = "–"
Record = dict[str, str | float | int | None]


@dataclass(frozen=True)
class Entry:
    """One field of a table."""

    text: str
    bold: bool = False
    value: float | None = None  # for machines


@dataclass(frozen=True)
class Table:
    """Plain text and numbers; the renderers know nothing of experiments."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]


@dataclass(frozen=True)
class Page:
    """What `mispair experiments table` writes."""

    name: str
    title: str
    about: tuple[str, ...]  # sentences above
    tables: tuple[Table, ...]
    notes: tuple[str, ...]  # sentences below: how to read it, where it comes from
    records: tuple[Record, ...]  # for the CSV


@dataclass(frozen=True)
class _Grid:
    """Everything read."""

    spec: Spec
    kind: str
    lines: list[Line]
    columns: list[str]
    results: dict[tuple[str, str], dict[int, Result]]  # by line and column, then seed

    def of(self, line: Line, column: str) -> dict[int, Result]:
        return self.results.get((line.key, column), {})

    def figures(self, line: Line, column: str, metric: str, gallery: int = 0) -> Figure | None:
        found = [result.galleries for result in self.of(line, column).values()]
        return figure([galleries[gallery][1][metric] for galleries in found if len(galleries) > gallery])

    def facts(self, column: str, gallery: int = 0) -> list[Fact]:
        said = self.spec.columns[column].published
        tables = self.evaluations[gallery].published or self.spec.published
        return facts_of(tables, self.kind, column if said is None else said)

    @property
    def evaluations(self) -> tuple[Evaluation, ...]:
        return self.spec.data[self.kind].evaluate


def make_page(out: Path) -> Page:
    """All tables of the experiment in `out`, from whatever is finished."""
    down = read_down(out)
    spec = parse_spec(down["spec"], str(out / "experiment.json"))
    grid = _read(out, spec, down["kind"], int(down["seeds"]))
    tables = [_overview(grid)]
    tables += [_details(grid, column, which) for column in grid.columns for which in range(len(grid.evaluations))]
    tables += [_cost(grid), _diagnostics(grid)]
    about = [f"{spec.shows}. Data: {down['data']} (settings of {grid.kind})."]
    if spec.about:
        about.append(spec.about)
    return Page(
        spec.name,
        spec.title,
        tuple(about),
        tuple(table for table in tables if table.rows),
        (*_reading(grid), *_origin(grid, down)),
        tuple(_records(grid)),
    )


def best(figures: dict[str, Figure]) -> str | None:
    """The largest mean, if it leads the runner-up by more than the larger of their spreads; None otherwise.

    A single seed has no spread, so nothing can be said and nobody is best.
    """
    order = sorted(figures, key=lambda key: -figures[key].mean)
    if len(order) < 2:
        return None
    first, second = figures[order[0]], figures[order[1]]
    if first.spread is None or second.spread is None:
        return None
    return order[0] if first.mean - second.mean > max(first.spread, second.spread) else None


def _read(out: Path, spec: Spec, kind: str, seeds: int) -> _Grid:
    how = spec.data[kind]
    results: dict[tuple[str, str], dict[int, Result]] = {}
    for line in lines(spec, how):
        for column in columns(spec, how):
            for seed in range(seeds):
                result = read_cell(out / "cells" / line.key / column / f"seed-{seed}")
                if result is not None:
                    results.setdefault((line.key, column), {})[seed] = result
    present = [line for line in lines(spec, how) if any(key == line.key for key, _ in results)]
    shown = [column for column in columns(spec, how) if any(key == column for _, key in results)]
    return _Grid(spec, kind, present, shown, results)


def _leader(grid: _Grid, column: str, metric: str, gallery: int = 0) -> str | None:
    found = {line.key: grid.figures(line, column, metric, gallery) for line in grid.lines if not line.row.knows_truth}
    return best({key: value for key, value in found.items() if value is not None})


def _label(line: Line) -> str:
    return f"{line.label} (knows the truth)" if line.row.knows_truth else line.label


def _column_label(grid: _Grid, column: str) -> str:
    return grid.spec.columns[column].label or column


def _overview(grid: _Grid) -> Table:
    """rSum of every row under every column."""
    rows = []
    for line in grid.lines:
        entries = [Entry(_label(line))]
        for column in grid.columns:
            found = grid.figures(line, column, "rsum")
            printed = [fact for fact in grid.facts(column) if fact.method == line.published]
            beside = f" (published {printed[0].rsum:.1f})" if printed else ""
            if found is None:
                entries.append(Entry(MISSING + beside))
            else:
                leads = _leader(grid, column, "rsum") == line.key
                entries.append(Entry(found.text() + beside, leads, found.mean))
        rows.append(tuple(entries))
    headings = ("rSum", *(_column_label(grid, column) for column in grid.columns))
    return Table("Sum of the six recalls", headings, tuple(rows))


def _details(grid: _Grid, column: str, gallery: int) -> Table:
    """All recalls of one column, then what the paper printed for it."""
    leaders = {metric: _leader(grid, column, metric, gallery) for metric in RECALLS}
    rows = []
    for line in grid.lines:
        found = {metric: grid.figures(line, column, metric, gallery) for metric in RECALLS}
        entries = [Entry(f.text(), leaders[metric] == line.key, f.mean) for metric, f in found.items() if f is not None]
        if entries:
            count = len(grid.of(line, column))
            rows.append((Entry(_label(line)), *entries, Entry(str(count), value=count)))
    for fact in grid.facts(column, gallery):
        values = [*fact.recalls, fact.rsum]
        texts = [Entry(f"{value:.1f}", value=value) for value in values]
        rows.append((Entry(f"{fact.method} (published)"), *texts, Entry("")))
    ranked = f", {grid.evaluations[gallery].label}" if len(grid.evaluations) > 1 else ""
    return Table(_column_label(grid, column) + ranked, ("", *HEADINGS, "seeds"), tuple(rows))


def _cost(grid: _Grid) -> Table:
    rows = []
    for line in grid.lines:
        found = [result for column in grid.columns for result in grid.of(line, column).values()]
        passes = figure([result.passes for result in found if result.passes is not None])
        seconds = figure([result.seconds for result in found])
        networks = {result.networks for result in found if result.networks is not None}
        assert seconds is not None
        rows.append(
            (
                Entry(_label(line)),
                Entry(", ".join(str(n) for n in sorted(networks)) or MISSING),
                Entry(MISSING if passes is None else f"{passes.mean:.1f}"),
                Entry(f"{seconds.mean:.0f}"),
            )
        )
    headings = ("cost of a cell", "networks", "training passes over the data", "seconds")
    return Table("What it costs", headings, tuple(rows))


def _diagnostics(grid: _Grid) -> Table:
    """How well the mismatched pairs were recognised, where a row tries to."""
    rows = []
    for line in grid.lines:
        for column in grid.columns:
            found = list(grid.of(line, column).values())
            estimated = figure([r.estimated for r in found if r.estimated is not None])
            if estimated is None:
                continue
            others = [figure([v for r in found if (v := getattr(r, name)) is not None]) for name in _JUDGED]
            texts = [MISSING if value is None else value.text(3) for value in (*others[:1], estimated, *others[1:])]
            rows.append((Entry(_label(line)), Entry(_column_label(grid, column)), *(Entry(text) for text in texts)))
    headings = ("", "", "mismatched pairs", "estimated", "AUROC of the split", "rematched mass on true partners")
    return Table("The split against the truth", headings, tuple(rows))


_JUDGED = ("injected", "auroc", "rematched")


def _reading(grid: _Grid) -> list[str]:
    counts = {len(found) for found in grid.results.values()}
    splits = {label for found in grid.results.values() for r in found.values() for label, _ in r.galleries}
    sentences = [
        f"Recalls in percent on {' and '.join(sorted(splits)) or 'nothing yet'}; ties count against the model. "
        "Mean ± sample standard deviation over seeds; bold where the best leads the runner-up by more than the larger "
        "of their two spreads."
    ]
    if counts and max(counts) == 1:
        sentences.append("One seed: no spread is known, so nothing is bold.")
    if any(line.row.knows_truth for line in grid.lines):
        sentences.append(
            "The row that knows the truth was trained on the truly matched pairs only; it is a yardstick and takes no "
            "part in the comparison."
        )
    if any(grid.facts(column) for column in grid.columns):
        sentences.append("Published rows are the paper's own figures (Han et al., CVPR 2024), not measured here.")
    for column in grid.columns:
        noise: dict[int, set[str]] = {}
        for line in grid.lines:
            for seed, result in grid.of(line, column).items():
                if result.noise is not None:
                    noise.setdefault(seed, set()).add(result.noise)
        if not noise:
            continue
        shown = "; ".join(
            f"seed {s}: {', '.join(sorted(h[:12] for h in hashes))}" for s, hashes in sorted(noise.items())
        )
        fair = all(same_noise(hashes) for hashes in noise.values())
        verdict = "the same for all rows" if fair else "DIFFERENT between rows: they cannot be compared"
        sentences.append(f"Noise of {_column_label(grid, column)}, {verdict}: {shown}.")
    return sentences


def _origin(grid: _Grid, down: dict[str, Any]) -> list[str]:
    code = sorted({result.code for found in grid.results.values() for result in found.values()})
    cells = sum(len(found) for found in grid.results.values())
    return [
        f"{cells} cells. Made by: " + "; ".join(f"`{command}`" for command in down["commands"]) + ".",
        "Code: " + "; ".join(code) + ".",
        f"Hardware: {down['hardware']}. Versions: {down['versions']}.",
    ]


def _records(grid: _Grid) -> list[Record]:
    found: list[Record] = []
    for column, gallery in product(grid.columns, range(len(grid.evaluations))):
        place: Record = {"column": column, "gallery": grid.evaluations[gallery].label}
        for line in grid.lines:
            figures = {metric: grid.figures(line, column, metric, gallery) for metric in RECALLS}
            record: Record = {"source": "measured", "row": line.key, **place}
            for metric, value in figures.items():
                if value is not None:
                    record |= {metric: value.mean, f"{metric}_std": value.spread}
            if "rsum" in record:
                found.append(record | _facts_of_runs(list(grid.of(line, column).values())))
        for fact in grid.facts(column, gallery):
            printed = dict(zip(RECALLS, (*fact.recalls, fact.rsum), strict=True))
            found.append({"source": f"published {fact.table}", "row": fact.method, **place, **printed})
    return found


def _facts_of_runs(results: list[Result]) -> Record:
    record: Record = {"seeds": len(results), "networks": results[0].networks}
    record["noise"] = " ".join(sorted({r.noise[:12] for r in results if r.noise is not None}))
    for name in ("passes", "seconds", "injected", "estimated", "auroc", "rematched"):
        values = figure([v for r in results if (v := getattr(r, name)) is not None])
        record[name] = None if values is None else values.mean
    record["code"] = "; ".join(sorted({r.code for r in results}))
    return record
