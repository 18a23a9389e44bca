"""How is one cell run? Train or go on, score, and leave a run folder behind that says with which code."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mispair.atomic import make_folder, write_atomically, write_text
from mispair.errors import InputError
from mispair.experiments.grid import ABOUT, GALLERIES, TRUTH, Cell
from mispair.experiments.provenance import code_hash
from mispair.experiments.spec import Evaluation
from mispair.progress import Progress
from mispair.retrieval.evaluate import RecallEvaluator
from mispair.retrieval.scoring import ensemble
from mispair.runtime.engine import Engine
from mispair.runtime.run_folder import RunFolder
from mispair.runtime.trainer import EpochReport
from mispair.workflows.finish import finish
from mispair.workflows.train import train
from mispair.workflows.trained_run import TrainedRun, load_run


class StoppedError(Exception):
    """A signal asked for the end; the cell is saved and goes on next time."""


def run_cell(cell: Cell, keep: bool, tell: Progress) -> None:
    """Afterwards the summary is there. Raises StoppedError when a signal came first."""
    if cell.config is None:
        _average(cell)
        return
    if cell.status() == "unscored":
        _score(cell)
        return
    resume = cell.status() == "begun"
    if not resume and cell.folder.exists():
        shutil.rmtree(cell.folder)  # begun under other values, or before its first save
    make_folder(cell.folder)
    if not (cell.folder / ABOUT).exists():
        write_text(cell.folder / ABOUT, json.dumps({"code": code_hash()}) + "\n")

    def hear(report: EpochReport) -> None:
        tell(report.epoch + 1, report.epochs)

    try:
        result = train(cell.config, cell.folder, resume=resume, on_epoch=hear, summarize=False)
    except InputError:
        if not resume:
            raise
        shutil.rmtree(cell.folder)  # a save nobody can go on from: a grid starts that cell again
        run_cell(cell, keep, tell)
        return
    if result.stopped:
        raise StoppedError
    # All else first: the summary says that the cell is finished.
    truth = result.training.data.table.truth
    if truth is not None:
        write_atomically(cell.folder / TRUTH, lambda path: _save(path, truth.mismatched))
    _score(cell)
    finish(result.training)
    if not keep:
        shutil.rmtree(RunFolder(cell.folder).state_file.parent, ignore_errors=True)


def _save(path: Path, values: NDArray[np.bool_]) -> None:
    with path.open("wb") as file:  # numpy would add a suffix to a name
        np.save(file, values, allow_pickle=False)


def _average(cell: Cell) -> None:
    """SGRAF: the mean score of separately trained runs, ranked."""
    for member in cell.members:
        if not RunFolder(member).finished:
            raise InputError(f"{cell.name} is the mean of runs of which {member} is not finished")
    runs = [load_run(member) for member in cell.members]
    recalls = {split: _mean(runs, Evaluation(split=split)) for split in ("dev", "test")}
    if cell.ranks_more:
        _write_galleries(cell, [_mean(runs, how) for how in cell.evaluate])
    members = [run.metrics for run in runs]
    cost = {
        key: sum(member["cost"][key] for member in members)
        for key, value in members[0]["cost"].items()
        if isinstance(value, int | float)
    }
    write_text(cell.folder / ABOUT, json.dumps({"code": code_hash()}) + "\n")
    summary = {
        "method": members[0]["method"],
        "model": "+".join(member["model"] for member in members),
        "seed": cell.seed,
        "seconds": sum(member["seconds"] for member in members),
        **recalls,
        "data": members[0]["data"],
        "noise": members[0]["noise"],
        "cost": cost,
    }
    RunFolder(cell.folder).write_summary(summary)


def _score(cell: Cell) -> None:
    if cell.ranks_more:
        assert cell.config is not None
        run = load_run(cell.folder, Engine(cell.config.engine).device)
        _write_galleries(cell, [_mean([run], how) for how in cell.evaluate])


def _mean(runs: list[TrainedRun], how: Evaluation) -> dict[str, float]:
    """Recalls of the mean score; every run reads the split in its own words."""
    judges = [RecallEvaluator(run.open_split(how.split), how.folds) for run in runs]
    return judges[0].metrics(ensemble(judge.scores(run.models) for judge, run in zip(judges, runs, strict=True)))


def _write_galleries(cell: Cell, metrics: list[dict[str, float]]) -> None:
    galleries = [
        {"split": how.split, "folds": how.folds, "label": how.label, "metrics": one}
        for how, one in zip(cell.evaluate, metrics, strict=True)
    ]
    write_text(cell.folder / GALLERIES, json.dumps(galleries, indent=2) + "\n")
