"""An experiment that compares detectors instead of trainings: who tells mismatched pairs, on the same vectors.

OUT/cells/ROW/COLUMN/seed-S.json holds the figures of one detector under one kind of mismatches, OUT/runs the trainings
they share. Both are kept: the same command goes on where it was.

Letters: N pairs, d width.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import ConfigDict, TypeAdapter, ValidationError
from torch import Tensor

from mispair.atomic import write_text
from mispair.auditing.embeddings import GivenPairs, centre, unit_vectors
from mispair.auditing.fixed_rules import all_but_best, cosine_distance, lemon, neg_clip_loss
from mispair.auditing.quick import quick_audit
from mispair.auditing.space import space_of
from mispair.auditing.verdicts import Verdicts
from mispair.config.choose import configure
from mispair.config.schema import RunConfig
from mispair.data import DataConfig, PairData, open_split
from mispair.data.embedded_folder import EmbeddedFolder
from mispair.data.untrained import untrained_vectors
from mispair.encoders.registry import open_encoder
from mispair.errors import InputError
from mispair.experiments.encode_first import refuse_missing_data
from mispair.experiments.grid import chosen
from mispair.experiments.runner import LOCK
from mispair.experiments.spec import Spec, load_spec, refuse_seeds
from mispair.functional.detection import best_f1_threshold, detection_metrics
from mispair.functional.judged_by_others import judge_by_others
from mispair.ordinary_file import read_ordinary
from mispair.runtime.lock import claimed
from mispair.runtime.run_folder import RunFolder
from mispair.workflows.audit import audit_run
from mispair.workflows.embedded_before import embedded_before
from mispair.workflows.train import train
from mispair.workflows.trained_run import TrainedRun, load_run

Floats = NDArray[np.float64]

_HEADINGS = ("AUROC", "average precision", "F1", "rate error")


@dataclass(frozen=True)
class Figures:
    """How one detector did; None where the figure does not exist, as AUROC where nothing is mismatched."""

    __pydantic_config__ = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    auroc: float | None
    average_precision: float | None
    f1: float | None
    rate_error: float


_FIGURES = TypeAdapter(Figures)


@dataclass(frozen=True)
class _DetectorAnswer:
    """What one detector says of N pairs."""

    suspicion: Floats  # (N,)
    mismatched: NDArray[np.bool_]  # (N,) its own decision
    rate: float


class _Case:
    """One data set under one kind of mismatches: what detectors look at, each made when it is first asked for."""

    def __init__(self, config: RunConfig, folder: Path) -> None:
        self.config, self.folder = config, folder

    @cached_property
    def data(self) -> PairData:
        vocabulary = None if self._given is not None else self.run.vocabulary
        return open_split(self.config.data, "train", vocabulary=vocabulary)

    @cached_property
    def wrong(self) -> NDArray[np.bool_]:
        truth = self.data.table.truth
        return np.zeros(len(self.data), bool) if truth is None else truth.mismatched

    @cached_property
    def run(self) -> TrainedRun:
        folder = RunFolder(self.folder)
        if not folder.finished:
            train(self.config, self.folder, resume=folder.begun)
        return load_run(self.folder)

    @cached_property
    def _given(self) -> EmbeddedFolder | None:
        """What `mispair embed` wrote, with the vectors of both sides."""
        files = EmbeddedFolder(Path(self.config.data.path))
        return files if files.begun and self.config.data.second is not None else None

    @cached_property
    def vectors(self) -> tuple[Tensor, Tensor]:
        """Unit vectors around their mean, (N, d) each: others do better so, and it is what quick_audit does."""
        table = self.data.table
        if self._given is None:
            space = space_of(self.run.models, self.data)
            images, texts = space.images, space.texts
        else:
            encoder = open_encoder(self._given.made_by().encoder)
            if not encoder.joint:
                raise InputError(f"{self._given.path}: its encoder has no common space for both sides")
            images = torch.from_numpy(encoder.in_text_space(_all(self.data.images)))
            texts = torch.from_numpy(_all(self.data.texts))
        a, b = (images[torch.from_numpy(table.image_rows)], texts[torch.from_numpy(table.text_rows)])
        return centre(unit_vectors("images", a), "images"), centre(unit_vectors("texts", b), "texts")

    @cached_property
    def quick(self) -> Verdicts:
        return quick_audit(GivenPairs(*self.vectors, image_ids=self.data.table.image_rows.tolist()))


def _all(store: Any) -> NDArray[np.float32]:
    """(rows, width): the mean vector of every row."""
    return np.concatenate([block.mean(1) for block in store.blocks(1024)]).astype(np.float32)


def _rule(
    suspicion: Callable[[Tensor, Tensor], Floats], below: float | None = None
) -> Callable[[_Case], _DetectorAnswer]:
    def ask(case: _Case) -> _DetectorAnswer:
        score = suspicion(*case.vectors)
        called = all_but_best(score) if below is None else score > -below
        return _DetectorAnswer(score, called, float(called.mean()))

    return ask


def _judged(verdicts: Verdicts) -> _DetectorAnswer:
    return _DetectorAnswer(verdicts.p_mismatch, verdicts.is_mismatch_issue, verdicts.facts.rate)


def _quick(case: _Case) -> _DetectorAnswer:
    return _judged(case.quick)


def _quick_f1(case: _Case) -> _DetectorAnswer:
    """The same with another decision: those whose leaving out is expected to give the best F1."""
    p = case.quick.p_mismatch
    return _DetectorAnswer(p, p >= best_f1_threshold(p), case.quick.facts.rate)


def _before_training(case: _Case) -> _DetectorAnswer:
    vectors = untrained_vectors(case.data)
    if vectors is None:
        raise InputError("pictures that are decoded by batch have no vectors to judge by")
    judged = judge_by_others(vectors.images, vectors.texts, case.data.table.image_rows, joint=vectors.joint)
    return _DetectorAnswer(judged.p_mismatch, judged.p_mismatch > 0.5, judged.estimate.rate)


def _trained(case: _Case) -> _DetectorAnswer:
    return _judged(audit_run(case.run, case.config.data, folds=2))


def _split(case: _Case) -> _DetectorAnswer:
    split = RunFolder(case.folder).last_split() if case.run else None
    if split is None:
        raise InputError(f"{case.config.method.name} keeps no split of the pairs")
    return _DetectorAnswer(split["posterior"], split["mismatched"], float(split["mismatched"].mean()))


DETECTORS: dict[str, Callable[[_Case], _DetectorAnswer]] = {
    "cosine-0.25": _rule(cosine_distance, 0.25),
    "cosine-0.28": _rule(cosine_distance, 0.28),
    "cosine-30": _rule(cosine_distance),
    "neg-clip-loss": _rule(neg_clip_loss),
    "lemon": _rule(lemon),
    "quick-audit": _quick,
    "quick-audit-f1": _quick_f1,
    "before-training": _before_training,
    "trained-audit": _trained,
    "split": _split,
}


def run_detectors(
    name: str, data: str, out: Path, *, seeds: int = 1, only: Sequence[str] = (), quick: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> str:  # fmt: skip
    """Ask every detector of the spec, and write and return the table as Markdown.

    Args:
        data: a folder that `mispair embed` wrote, or any data that can be trained on.
        only: some cells, as `--only` has them.
        quick: one seed of the cells of a first look.
    """
    spec, _ = load_spec(name)
    if unknown := [row for row in spec.rows if row not in DETECTORS]:
        raise InputError(
            f"experiment {spec.name}: there is no detector {unknown[0]!r}; there are {', '.join(DETECTORS)}"
        )
    refuse_missing_data(data)
    if quick:
        seeds, only = 1, [*spec.quick, *only]
    rows, columns = chosen("row", {r: r for r in spec.rows}, only), chosen("column", {c: c for c in spec.columns}, only)
    refuse_seeds(seeds)
    with claimed(out / LOCK, "mispair experiments run"):
        return _run(spec, data, out, seeds, rows, columns, say)


def _run(
    spec: Spec, data: str, out: Path, seeds: int, rows: Sequence[str], columns: Sequence[str],
    say: Callable[[str], None],
) -> str:  # fmt: skip
    figures_of: dict[str, list[Figures]] = {row: [] for row in rows}
    for seed in range(seeds):
        for column in columns:
            case = _Case(_configure(spec, data, column, seed), out / "runs" / column / f"seed-{seed}")
            for row in rows:
                file = out / "cells" / row / column / f"seed-{seed}.json"
                if not os.path.lexists(file):
                    say(f"{row} {column} seed {seed}")
                    write_text(file, json.dumps(asdict(_measure(DETECTORS[row](case), case.wrong))) + "\n")
                figures_of[row].append(_read(file))
    table = _table(spec, data, columns, seeds, figures_of)
    write_text(out / "tables" / f"{spec.name}.md", table)
    return table


def _read(file: Path) -> Figures:
    try:
        return _FIGURES.validate_json(read_ordinary(file))
    except (OSError, ValidationError):
        raise InputError(f"{file} is damaged; remove it, and the same command makes it again") from None


def _configure(spec: Spec, data: str, column: str, seed: int) -> RunConfig:
    values: dict[str, Any] = {"path": data if data == "scenes" else str(Path(data).resolve())}
    known = embedded_before(DataConfig(**values), texts=True)
    values |= {name: getattr(known, name) for name in ("second", "joint", "encoder") if getattr(known, name)}
    settings = spec.data["scenes"].set if data == "scenes" and "scenes" in spec.data else {}
    sets = [f"{key}={json.dumps(value)}" for key, value in (settings | spec.columns[column].set).items()]
    config, _ = configure(values, seed=seed, noise=0.0, sets=[*sets, f"data.noise.seed={seed}"])
    return config


def _measure(answer: _DetectorAnswer, wrong: NDArray[np.bool_]) -> Figures:
    metrics = detection_metrics(answer.mismatched.astype(np.float64), wrong)
    order = np.argsort(np.argsort(answer.suspicion, kind="stable"), kind="stable") / max(len(wrong), 1)
    ordered = detection_metrics(np.where(np.isfinite(answer.suspicion), order, 0.0), wrong)
    auroc, precision = ordered["auroc"], ordered["average_precision"]
    exists = bool(wrong.any() and not wrong.all())
    return Figures(
        auroc if exists else None,
        precision if exists else None,
        metrics["f1"] if wrong.any() else None,
        abs(answer.rate - float(wrong.mean())),
    )


def _table(spec: Spec, data: str, columns: Sequence[str], seeds: int, figures_of: dict[str, list[Figures]]) -> str:
    """Means over columns and seeds; the best of every column in bold."""
    means = np.full((len(figures_of), len(_HEADINGS)), np.nan)
    for k, figures in enumerate(figures_of.values()):
        for j, measured in enumerate(zip(*(asdict(one).values() for one in figures), strict=True)):
            known = [value for value in measured if value is not None]
            means[k, j] = np.mean(known) if known else np.nan
    best = [np.nanmin(column) if j == 3 else np.nanmax(column) for j, column in enumerate(means.T)]
    shown_columns = ", ".join(spec.columns[c].label or c for c in columns)
    lines = [
        f"# {spec.title}",
        "",
        f"{Path(data).name}, mismatches {shown_columns}; means, {seeds} seeds.",
        "",
        "| | " + " | ".join(_HEADINGS) + " |",
        "|---" * (len(_HEADINGS) + 1) + "|",
    ]
    for row, values in zip(figures_of, means, strict=True):
        shown = [
            f"**{v:.3f}**" if round(v, 3) == round(b, 3) else f"{v:.3f}" for v, b in zip(values, best, strict=True)
        ]
        lines.append(f"| {spec.rows[row].label or row} | " + " | ".join(shown) + " |")
    return "\n".join([*lines, "", spec.about, ""])
