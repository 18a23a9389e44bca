"""What do the paper's figures show of these runs? A sweep, the cost early and late, refined alignments, rematches."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mispair.data.files.npy import open_array
from mispair.errors import InputError
from mispair.experiments.content import MISSING, Drawing, Entry, ResultTable
from mispair.experiments.grid import TRUTH
from mispair.experiments.reading import Grid
from mispair.report.charts import Axes
from mispair.report.html import Html
from mispair.runtime.run_folder import RunFolder
from mispair.workflows.report.sample_proposals import Proposal, propose_from_sample
from mispair.workflows.trained_run import load_run

_BINS = 20
_RANKS = 10
_CASES = 12
_STYLE = """<style>
svg { font: 11px system-ui, sans-serif; background: #fff; fill: #1d2126 }
.grid { stroke: #eceae4 } .axis { stroke: #5a626c }
.line { fill: none; stroke-width: 2 } .area { fill-opacity: .35; stroke-width: 1.5 }
.matched { stroke: #0b62a4; fill: #8db8dc } .mismatched { stroke: #b8480a; fill: #f0a875 }
.third { stroke: #5a626c; fill: #5a626c } .line.matched, .line.mismatched, .line.third { fill: none }
.dashed { stroke-dasharray: 4 3 }
</style>"""


@dataclass(frozen=True)
class Drawn:
    """What a figure adds to the page."""

    tables: tuple[ResultTable, ...] = ()
    drawings: tuple[Drawing, ...] = ()
    notes: tuple[str, ...] = ()


def draw(grid: Grid) -> Drawn:
    """The figure the spec asks for; nothing where it asks for none."""
    if grid.spec.figure is None:
        return Drawn()
    kinds = {"sweep": _sweep, "cost": _cost, "alignment": _alignment, "rematched": _rematched}
    return kinds[grid.spec.figure](grid)


def _sweep(grid: Grid) -> Drawn:
    """Recalls over the columns, which are numbers (the paper's parameter analysis)."""
    drawings = []
    xs = [float(column) for column in grid.columns]
    for line in grid.lines:
        for way, name in (("i2t", "image to text"), ("t2i", "text to image")):
            curves = []
            for metric in ("r1", "r5", "r10"):
                figures = [grid.figures(line, column, f"{way}_{metric}") for column in grid.columns]
                curves.append([(x, f.mean) for x, f in zip(xs, figures, strict=True) if f is not None])
            low = min((y for curve in curves for _, y in curve), default=0.0)
            high = max((y for curve in curves for _, y in curve), default=1.0)
            axes = Axes((min(xs, default=0.0), max(xs, default=1.0)), (max(0.0, low - 5), high + 5))
            marks = [
                axes.line([x for x, _ in curve], [y for _, y in curve], style)
                for curve, style in zip(curves, ("matched", "mismatched", "third dashed"), strict=True)
            ]
            title = f"{line.label}, {name}: R@1 (blue), R@5 (orange), R@10 (dashed)"
            drawings.append(
                _drawing(grid, f"{line.key}-{way}", title, axes.draw(title, *marks, x_name=grid.spec.title))
            )
    return Drawn(drawings=tuple(drawings))


def _cost(grid: Grid) -> Drawn:
    """Shares of truly matched and mismatched pairs by transport cost, early and late."""
    tables, drawings, notes = [], [], []
    for name, folder in grid.first_runs():
        run = RunFolder(folder)
        epochs = _with_cost(run)
        if not epochs:
            notes.append(f"{name}: the run kept no transport costs, so there is nothing to draw.")
            continue
        truth = _truth(folder)
        if truth is None:
            notes.append(f"{name}: nobody knows which pairs are mismatched; they are grouped as the split called them.")
        chosen = dict(zip(("early", "late"), (epochs[0], epochs[-1]), strict=True))
        values = {when: run.split(epoch) for when, epoch in chosen.items()}
        costs = {when: columns["cost"] for when, columns in values.items()}
        if truth is not None and any(len(truth) != len(cost) for cost in costs.values()):
            raise InputError(f"{folder / TRUTH} is of other pairs than {run.splits_folder}; run that cell again")
        edges = np.linspace(min(c.min() for c in costs.values()), max(c.max() for c in costs.values()), _BINS + 1)
        shares = []
        for when, cost in costs.items():
            wrong = truth if truth is not None else values[when]["mismatched"]
            shares += [_share(cost[~wrong], edges), _share(cost[wrong], edges)]
            axes = Axes((edges[0], edges[-1]), (0.0, max(max(s) for s in shares[-2:]) * 1.1 or 1.0))
            title = f"{name}, {when} (epoch {chosen[when] + 1}): matched (blue) and mismatched (orange)"
            marks = [axes.steps(list(edges), shares[-2], "matched"), axes.steps(list(edges), shares[-1], "mismatched")]
            drawings.append(
                _drawing(grid, f"{_place(folder)}-{when}", title, axes.draw(title, *marks, x_name="transport cost"))
            )
        headings = ("transport cost", "matched, early", "mismatched, early", "matched, late", "mismatched, late")
        rows = [
            (Entry(f"{low:.3f} to {high:.3f}"), *(Entry(f"{share[k]:.1%}") for share in shares))
            for k, (low, high) in enumerate(pairwise(edges))
        ]
        tables.append(ResultTable(f"Transport cost, {name}", headings, tuple(rows)))
    return Drawn(tuple(tables), tuple(drawings), tuple(notes))


def _place(folder: Path) -> str:
    """Row and column of a cell, for the name of a drawing."""
    return "-".join(folder.parts[-3:-1])


def _alignment(grid: Grid) -> Drawn:
    """The mean normalised refined alignment of a row, largest first."""
    tables, drawings, notes = [], [], []
    for name, folder in grid.first_runs():
        _, ranked = RunFolder(folder).alignments()
        if not ranked:
            notes.append(f"{name}: the run kept no refined alignments, so there is nothing to draw.")
            continue
        for side, values in ranked.items():
            edges = [k + 0.5 for k in range(len(values) + 1)]
            axes = Axes((edges[0], edges[-1]), (0.0, max([*values, 1e-9]) * 1.1))
            title = f"{name}: {side} rows"
            style = "matched" if side == "transported" else "mismatched"
            body = axes.draw(title, axes.bars(edges, values, style), x_name="rank of the caption")
            drawings.append(_drawing(grid, f"{_place(folder)}-{side}", title, body))
        rows = [
            (Entry(str(k + 1)), *(Entry(f"{v[k]:.4f}" if k < len(v) else MISSING) for v in ranked.values()))
            for k in range(_RANKS)
        ]
        tables.append(ResultTable(f"Refined alignment by rank, {name}", ("rank", *ranked), tuple(rows)))
    return Drawn(tuple(tables), tuple(drawings), tuple(notes))


def _rematched(grid: Grid) -> Drawn:
    """The surest other captions for pictures whose own was called mismatched."""
    tables, notes = [], []
    for name, folder in grid.first_runs():
        run = load_run(folder)
        split = run.files.last_split()
        try:
            data = run.open_split("train")
        except InputError as error:
            notes.append(f"{name}: the data is needed to quote it, but {error}.")
            continue
        captions, ids, truth = data.table.captions, data.table.image_ids, data.table.truth
        if split is None or captions is None:
            notes.append(f"{name}: there are no captions to quote, or nothing was called mismatched.")
            continue
        proposals = propose_from_sample(run, data, np.flatnonzero(split["mismatched"]))
        proposals.sort(key=lambda p: -p.weight * p.gain)
        rows = []
        for proposal in _one_per_image(proposals, data.table.image_rows)[:_CASES]:
            image = int(data.table.image_rows[proposal.pair])
            given, better = (captions[int(data.table.text_rows[p])] for p in (proposal.pair, proposal.proposed))
            right = MISSING if truth is None else "yes" if truth.image_rows[proposal.proposed] == image else "no"
            texts = (str(ids[image]) if ids is not None else str(image), given, better, f"{proposal.weight:.2f}", right)
            rows.append(tuple(Entry(text if len(text) < 200 else text[:199] + "…") for text in texts))
        headings = ("picture", "given caption", "proposed caption", "weight", "its own")
        tables.append(ResultTable(f"Rematched, {name}", headings, tuple(rows)))
    return Drawn(tuple(tables), (), tuple(notes))


def _one_per_image(proposals: list[Proposal], image_rows: NDArray[np.int64]) -> list[Proposal]:
    best: dict[int, Proposal] = {}
    for proposal in proposals:
        best.setdefault(int(image_rows[proposal.pair]), proposal)
    return list(best.values())


def _with_cost(run: RunFolder) -> list[int]:
    """Epochs that recorded what moving each pair would cost."""
    return [epoch for epoch in run.splits() if "cost" in run.split_names(epoch)]


def _truth(folder: Path) -> NDArray[np.bool_] | None:
    """(N,) which pairs were mismatched on purpose; None where nobody knows."""
    path = folder / TRUTH
    if not os.path.lexists(path):
        return None
    truth = open_array(path, "which pairs were mismatched on purpose")
    if truth.ndim != 1 or truth.dtype != np.bool_:
        raise InputError(f"{path} is damaged; remove that folder and run the experiment again")
    return truth


def _share(values: NDArray[Any], edges: NDArray[Any]) -> list[float]:
    counts, _ = np.histogram(values, edges)
    return [float(count) / max(len(values), 1) for count in counts]


def _drawing(grid: Grid, name: str, title: str, svg: Html) -> Drawing:
    text = str(svg).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    opened = text.index(">") + 1
    return Drawing(f"{grid.spec.name}-{name}", title, text[:opened] + _STYLE + text[opened:] + "\n")
