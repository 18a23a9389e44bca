"""Who is best where, at what cost, beside what the paper printed? Tables from finished cells."""

from __future__ import annotations

from itertools import product

from mispair.experiments.content import MISSING, Entry, Record, ResultTable
from mispair.experiments.reading import Grid, shown_name
from mispair.experiments.results import CellResult, Figure, figure
from mispair.recall_keys import HEADINGS, RECALLS


def result_tables(grid: Grid) -> list[ResultTable]:
    """The overview, all recalls of each column, the cost, and how well mismatched pairs were recognised."""
    tables = [_overview(grid)]
    tables += [_details(grid, column, which) for column in grid.columns for which in range(len(grid.evaluations))]
    tables += [_cost(grid), _diagnostics(grid)]
    return [table for table in tables if table.rows]


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


def _leader(grid: Grid, column: str, metric: str, gallery: int = 0) -> str | None:
    figures = {line.key: grid.figures(line, column, metric, gallery) for line in grid.lines if not line.row.knows_truth}
    return best({key: value for key, value in figures.items() if value is not None})


def _overview(grid: Grid) -> ResultTable:
    """rSum of every row under every column."""
    rows = []
    for line in grid.lines:
        entries = [Entry(shown_name(line))]
        for column in grid.columns:
            reached = grid.figures(line, column, "rsum")
            printed = [fact for fact in grid.facts(column) if fact.method == line.published]
            beside = f" (published {printed[0].rsum:.1f})" if printed else ""
            if reached is None:
                entries.append(Entry(MISSING + beside))
            else:
                leads = _leader(grid, column, "rsum") == line.key
                entries.append(Entry(reached.text() + beside, leads))
        rows.append(tuple(entries))
    headings = ("rSum", *(grid.label(column) for column in grid.columns))
    return ResultTable("Sum of the six recalls", headings, tuple(rows))


def _details(grid: Grid, column: str, gallery: int) -> ResultTable:
    """All recalls of one column, then what the paper printed for it."""
    leaders = {metric: _leader(grid, column, metric, gallery) for metric in RECALLS}
    rows = []
    for line in grid.lines:
        figures = {metric: grid.figures(line, column, metric, gallery) for metric in RECALLS}
        entries = [Entry(f.text(), leaders[metric] == line.key) for metric, f in figures.items() if f is not None]
        if entries:
            count = len(grid.of(line, column))
            rows.append((Entry(shown_name(line)), *entries, Entry(str(count))))
    for fact in grid.facts(column, gallery):
        texts = [Entry("–" if value is None else f"{value:.1f}") for value in fact.figures]
        rows.append((Entry(f"{fact.method} (published)"), *texts, Entry("")))
    ranked = f", {grid.evaluations[gallery].label}" if len(grid.evaluations) > 1 else ""
    return ResultTable(grid.label(column) + ranked, ("", *HEADINGS, "seeds"), tuple(rows))


def _cost(grid: Grid) -> ResultTable:
    rows = []
    for line in grid.lines:
        results = [result for column in grid.columns for result in grid.of(line, column).values()]
        passes = figure([result.passes for result in results if result.passes is not None])
        judging = figure([result.forward_passes for result in results if result.forward_passes is not None])
        seconds = figure([result.seconds for result in results])
        networks = {result.networks for result in results if result.networks is not None}
        assert seconds is not None
        rows.append(
            (
                Entry(shown_name(line)),
                Entry(", ".join(str(n) for n in sorted(networks)) or MISSING),
                Entry(MISSING if passes is None else f"{passes.mean:.1f}"),
                Entry(MISSING if judging is None else f"{judging.mean:.1f}"),
                Entry(f"{seconds.mean:.0f}"),
            )
        )
    headings = ("cost of a cell", "networks", "training passes over the pairs", "judging passes", "seconds")
    return ResultTable("What it costs", headings, tuple(rows))


def _diagnostics(grid: Grid) -> ResultTable:
    """How well the mismatched pairs were recognised, where a row tries to."""
    rows = []
    for line in grid.lines:
        for column in grid.columns:
            results = list(grid.of(line, column).values())
            if all(result.called is None for result in results):
                continue
            judged = {name: figure([v for r in results if (v := getattr(r, name)) is not None]) for name in _JUDGED}
            texts = [MISSING if value is None else value.text(3) for value in judged.values()]
            rows.append((Entry(shown_name(line)), Entry(grid.label(column)), *(Entry(text) for text in texts)))
    headings = ("", "", *_JUDGED.values())
    return ResultTable("The split against the truth", headings, tuple(rows))


_JUDGED = {
    "injected": "mismatched pairs",
    "called": "called mismatched",
    "estimated": "estimated, before training",
    "lower": "from",
    "upper": "to",
    "auroc": "AUROC of the split",
    "ece": "ECE",
    "certain": "of p ≥ 0.99 wrong",
    "rematched": "rematched mass on true partners",
}


def records(grid: Grid) -> list[Record]:
    """One per row, column and gallery, measured and published."""
    records: list[Record] = []
    for column, gallery in product(grid.columns, range(len(grid.evaluations))):
        place: Record = {"column": column, "gallery": grid.evaluations[gallery].label}
        for line in grid.lines:
            figures = {metric: grid.figures(line, column, metric, gallery) for metric in RECALLS}
            record: Record = {"source": "measured", "row": line.key, **place}
            for metric, value in figures.items():
                if value is not None:
                    record |= {metric: value.mean, f"{metric}_std": value.spread}
            if "rsum" in record:
                records.append(record | _facts_of_runs(list(grid.of(line, column).values())))
        for fact in grid.facts(column, gallery):
            printed = {name: v for name, v in zip(RECALLS, fact.figures, strict=True) if v is not None}
            records.append({"source": f"published {fact.table}", "row": fact.method, **place, **printed})
    return records


def _facts_of_runs(results: list[CellResult]) -> Record:
    record: Record = {"seeds": len(results), "networks": results[0].networks}
    record["noise"] = " ".join(sorted({r.noise[:12] for r in results if r.noise is not None}))
    for name in ("passes", "forward_passes", "seconds", *_JUDGED):
        values = figure([v for r in results if (v := getattr(r, name)) is not None])
        record[name] = None if values is None else values.mean
    record["code"] = "; ".join(sorted({r.code for r in results}))
    return record
