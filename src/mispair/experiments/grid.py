"""Which runs make up the table? Every cell with its configuration, in the order in which they are run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mispair.config.load import essence, load_config
from mispair.config.schema import RunConfig
from mispair.errors import InputError
from mispair.experiments.spec import DataSetup, Evaluation, Row, Spec
from mispair.methods import method_preset
from mispair.models import model_preset
from mispair.ordinary_file import read_ordinary
from mispair.runtime.run_folder import RunFolder

Status = Literal["new", "begun", "unscored", "finished", "changed"]
ENSEMBLE = "sgraf"
# What a cell's folder holds beside a run's own files:
ABOUT = "cell.json"  # with which code it was run
GALLERIES = "gallery.json"  # recalls of the galleries asked for, where that is not the test split alone
TRUTH = "truth.npy"  # which training pairs were mismatched on purpose


@dataclass(frozen=True)
class Line:
    """A row of the spec with one backbone."""

    key: str
    label: str
    row: Row
    backbone: str
    published: str | None

    @property
    def members(self) -> tuple[str, ...]:
        """Lines whose mean score this one is."""
        stem = self.key.removesuffix(f"-{ENSEMBLE}")
        return (f"{stem}-sgr", f"{stem}-saf") if self.backbone == ENSEMBLE else ()


@dataclass(frozen=True)
class Cell:
    """One run folder of the grid; an ensemble has members instead of a configuration."""

    line: str
    column: str
    seed: int
    folder: Path
    evaluate: tuple[Evaluation, ...]
    config: RunConfig | None
    members: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.line} {self.column} seed {self.seed}"

    def status(self) -> Status:
        """Finished cells are never run again; one that ran under another configuration is not this cell."""
        run = RunFolder(self.folder)
        done = run.finished
        if self.config is None:
            return "finished" if done and self._scored() and not self._outdated() else "new"
        if not run.begun:
            return "new"
        same = self._same()
        if done:
            return "changed" if not same else "finished" if self._scored() else "unscored"
        return "begun" if same and run.resumable else "new"

    @property
    def ranks_more(self) -> bool:
        """Whether something else than the test split as one gallery is asked for; it is kept in GALLERIES."""
        return [(e.split, e.folds) for e in self.evaluate] != [("test", None)]

    def _outdated(self) -> bool:
        """Whether a member of this ensemble is gone or was trained again since."""
        own = RunFolder(self.folder).summary_file.stat().st_mtime_ns
        members = [RunFolder(member).summary_file for member in self.members]
        return not all(path.exists() and path.stat().st_mtime_ns <= own for path in members)

    def _scored(self) -> bool:
        if not self.ranks_more:
            return True
        try:
            scored = json.loads(read_ordinary(self.folder / GALLERIES))
            return [(one["split"], one["folds"]) for one in scored] == [(e.split, e.folds) for e in self.evaluate]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return False

    def _same(self) -> bool:
        try:
            written = load_config(RunFolder(self.folder).config_file)
        except InputError:  # written by a version with other values
            return False
        return self.config is not None and essence(written) == essence(self.config)


def lines(spec: Spec, kind: DataSetup) -> list[Line]:
    """The table's lines on this kind of data."""
    shown = []
    for key, row in spec.rows.items():
        if kind.rows and key not in kind.rows:
            continue
        for backbone in kind.backbones:
            if row.backbones and backbone not in row.backbones:
                continue
            several = len(kind.backbones) > 1
            label = row.label or key
            shown.append(
                Line(
                    f"{key}-{backbone}" if several else key,
                    f"{label}, {backbone.upper()}" if several else label,
                    row,
                    backbone,
                    row.published.replace("{backbone}", backbone.upper()) if row.published else None,
                )
            )
    return shown


def columns(spec: Spec, kind: DataSetup) -> list[str]:
    """Keys of the spec's columns that are run on this kind of data."""
    return [key for key in spec.columns if not kind.columns or key in kind.columns]


def cells(spec: Spec, path: Path, kind: str, data: str, out: Path, seeds: int, only: Sequence[str] = ()) -> list[Cell]:
    """All cells, those of the first seed first, so that half a grid is already a table."""
    how = spec.data[kind]
    chosen_lines = chosen("row", {line.key: line for line in lines(spec, how)}, only)
    chosen_columns = chosen("column", {key: key for key in columns(spec, how)}, only)
    listed = []
    for seed in range(seeds):
        # An ensemble needs its members first.
        for line in sorted(chosen_lines, key=lambda line: line.backbone == ENSEMBLE):
            for column in chosen_columns:
                folder = out / "cells" / line.key / column / f"seed-{seed}"
                members = tuple(out / "cells" / m / column / f"seed-{seed}" for m in line.members)
                config = None if members else _configure(spec, path, how, line, column, data, seed)
                listed.append(Cell(line.key, column, seed, folder, how.evaluate, config, members))
    return listed


def _configure(spec: Spec, path: Path, how: DataSetup, line: Line, column: str, data: str, seed: int) -> RunConfig:
    row = line.row
    key = line.key.removesuffix(f"-{line.backbone}") if len(how.backbones) > 1 else line.key
    file = None
    if how.config is not None:
        name = how.config.replace("{config}", row.config or key).replace("{backbone}", line.backbone)
        file = Path(os.path.normpath(path.parent / name))
    if file is not None and not file.exists():
        raise InputError(f"{path.name}: row {line.key} needs the configuration {file}, which is not there")
    over: dict[str, Any] = {"data": {"path": data}, "seed": seed}
    if row.method is not None:
        try:
            method = method_preset(row.method)
        except InputError as error:
            raise InputError(f"{path.name}, row {line.key}: {error}") from None
        # Every value of the preset; only the length of the warm-up belongs to the data set's budget.
        over["method"] = method.model_dump(mode="json", exclude={"warmup_epochs"})
    if how.model is not None:
        backbone, _, size = how.model.replace("{backbone}", line.backbone).partition(":")
        over["model"] = model_preset(backbone, size or "small").model_dump(mode="json")
    setting = spec.columns[column]
    layers = (how.set, row.set, how.row_set.get(key, {}), setting.set, setting.row_set.get(key, {}))
    sets = [assignment for layer in layers for assignment in _sets(layer, data)]
    config = load_config(file, sets, between=over)
    if config.data.noise is not None:
        # One seed, one noise: every method meets the same mismatches.
        config = load_config(file, [*sets, f"data.noise.seed={seed}"], between=over)
    return config


def _sets(values: dict[str, Any], data: str) -> list[str]:
    """As --set takes them; `{data}` in a text is the path of the data, whose further files a spec may name."""
    filled = {key: value.replace("{data}", data) if isinstance(value, str) else value for key, value in values.items()}
    return [f"{key}={json.dumps(value)}" for key, value in filled.items()]


def chosen(axis: str, known: dict[str, Any], only: Sequence[str]) -> list[Any]:
    """What `--only axis=a,b` leaves; without one, everything."""
    wanted: list[str] = []
    for choice in only:
        name, equals, values = choice.partition("=")
        if not equals or name not in ("row", "column"):
            raise InputError(f"--only takes row=a,b or column=a,b, got {choice!r}")
        if name == axis:
            wanted += [value.strip() for value in values.split(",") if value.strip()]
    for value in wanted:
        if value not in known:
            raise InputError(f"there is no {axis} {value!r} here; there are {', '.join(known)}")
    return [item for key, item in known.items() if not wanted or key in wanted]


def same_noise(hashes: Iterable[str | None]) -> bool:
    """Whether all rows of one column and seed met the same mismatches."""
    return len({noise for noise in hashes if noise is not None}) <= 1
