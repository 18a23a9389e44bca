"""How is one cell run? Train or go on, score, and leave a run folder behind that says with which code."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from mispair.config.assemble import Assembly, LoadedRun, assemble, load_run
from mispair.config.finish import finish
from mispair.config.rematching import judge_rematching
from mispair.errors import InputError
from mispair.experiments.grid import Cell
from mispair.experiments.provenance import code_hash
from mispair.experiments.spec import Evaluation
from mispair.retrieval.evaluate import RecallEvaluator
from mispair.retrieval.scoring import ensemble
from mispair.runtime.checkpoint import write_atomically, write_text
from mispair.runtime.engine import Engine
from mispair.runtime.journal import Journal

Tell = Callable[[int, int], None]  # epochs done, of how many


class StoppedError(Exception):
    """A signal asked for the end; the cell is saved and goes on next time."""


def run_cell(cell: Cell, keep: bool, tell: Tell) -> None:
    """Afterwards `metrics.json` is there. Raises StoppedError when a signal came first."""
    if cell.config is None:
        _average(cell)
        return
    engine = Engine(cell.config.engine)
    if cell.status() == "unscored":
        _score(cell, engine)
        return
    fresh = cell.status() != "begun"
    if fresh and cell.folder.exists():
        shutil.rmtree(cell.folder)  # begun under other values, or before its first save
    cell.folder.mkdir(parents=True, exist_ok=True)
    if not (cell.folder / "cell.json").exists():
        write_text(cell.folder / "cell.json", json.dumps({"code": code_hash()}) + "\n")
    with _Journal(cell, tell) as journal:
        try:
            run = _assemble(cell, engine, journal, fresh)
        except InputError:
            if fresh:
                raise
            shutil.rmtree(cell.folder)  # a save nobody can go on from: a grid starts that cell again
            run_cell(cell, keep, tell)
            return
        if run.trainer.fit().stopped:
            raise StoppedError
    # All else first: `metrics.json` says that the cell is finished.
    _write_truth(cell, run)
    _score(cell, engine)
    finish(run)
    if not keep:
        shutil.rmtree(cell.folder / "last", ignore_errors=True)


def _assemble(cell: Cell, engine: Engine, journal: Journal, fresh: bool) -> Assembly:
    assert cell.config is not None
    run = assemble(cell.config, cell.folder, engine, journal)
    if not fresh:
        run.trainer.resume()
    return run


def _write_truth(cell: Cell, run: Assembly) -> None:
    """What only evaluation may know, for the table: which pairs were mismatched, and whether rematches hit."""
    truth = run.train.table.truth
    if json.loads((cell.folder / "cell.json").read_text(encoding="utf-8")).get("rematching") is not None:
        return  # judged before the cell was killed: what rematching saw in its last epoch is gone now
    rematching = judge_rematching(run)
    if truth is not None:
        write_atomically(cell.folder / "truth.npy", lambda path: _save(path, truth.mismatched))
    about = {"code": code_hash(), "rematching": None if rematching is None else asdict(rematching)}
    write_text(cell.folder / "cell.json", json.dumps(about) + "\n")


def _save(path: Path, values: NDArray[np.bool_]) -> None:
    with path.open("wb") as file:  # numpy would add a suffix to a name
        np.save(file, values, allow_pickle=False)


def _average(cell: Cell) -> None:
    """SGRAF: the mean score of separately trained runs, ranked."""
    for member in cell.members:
        if not (member / "metrics.json").exists():
            raise InputError(f"{cell.name} is the mean of runs of which {member} is not finished")
    runs = [load_run(member) for member in cell.members]
    found = {split: _mean(runs, Evaluation(split=split)) for split in ("dev", "test")}
    if cell.ranks_more:
        _write_galleries(cell, [_mean(runs, how) for how in cell.evaluate])
    members = [json.loads((member / "metrics.json").read_text(encoding="utf-8")) for member in cell.members]
    cost = {
        key: sum(member["cost"][key] for member in members)
        for key, value in members[0]["cost"].items()
        if isinstance(value, int | float)
    }
    write_text(cell.folder / "cell.json", json.dumps({"code": code_hash()}) + "\n")
    summary = {
        "method": members[0]["method"],
        "model": "+".join(member["model"] for member in members),
        "seed": cell.seed,
        "seconds": sum(member["seconds"] for member in members),
        **found,
        "data": members[0]["data"],
        "noise": members[0]["noise"],
        "cost": cost,
    }
    write_text(cell.folder / "metrics.json", json.dumps(summary, indent=2) + "\n")


def _score(cell: Cell, engine: Engine) -> None:
    if cell.ranks_more:
        run = load_run(cell.folder, engine.device)
        _write_galleries(cell, [_mean([run], how) for how in cell.evaluate])


def _mean(runs: list[LoadedRun], how: Evaluation) -> dict[str, float]:
    """Recalls of the mean score; every run reads the split in its own words."""
    judges = [RecallEvaluator(run.open_split(how.split), how.folds) for run in runs]
    return judges[0].metrics(ensemble(judge.scores(run.models) for judge, run in zip(judges, runs, strict=True)))


def _write_galleries(cell: Cell, metrics: list[dict[str, float]]) -> None:
    found = [
        {"split": how.split, "folds": how.folds, "label": how.label, "metrics": one}
        for how, one in zip(cell.evaluate, metrics, strict=True)
    ]
    write_text(cell.folder / "gallery.json", json.dumps(found, indent=2) + "\n")


class _Journal(Journal):
    """Writes the run's own journal, is silent, and tells the grid how many epochs are done."""

    def __init__(self, cell: Cell, tell: Tell) -> None:
        super().__init__(cell.folder / "metrics.jsonl", Console(quiet=True))
        assert cell.config is not None
        self._tell, self._epochs = tell, cell.config.train.epochs

    def event(self, kind: str, **values: Any) -> None:
        super().event(kind, **values)
        if kind == "epoch":
            self._tell(int(values["epoch"]) + 1, self._epochs)
