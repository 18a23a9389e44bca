"""Recalls of one run, or of several whose scores are averaged."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from mispair.data import DataConfig
from mispair.data.pair_table import PairTable
from mispair.errors import InputError
from mispair.progress import Tell, silent
from mispair.retrieval.evaluate import RecallEvaluator
from mispair.retrieval.scoring import Precision
from mispair.retrieval.shortlist import Shortlisted
from mispair.workflows.trained_run import TrainedRun


def evaluate_runs(
    runs: Sequence[TrainedRun],
    split: str,
    others: Sequence[DataConfig | None],
    *,
    folds: int | None = None,
    shortlist: int | None = None,
    precision: Precision = "fp32",
    tell: Tell = silent,
) -> tuple[dict[str, float], Shortlisted | None]:
    """Rank every image against every text of a split by the mean score of the runs.

    Each run reads words by its own vocabulary, so each scores its own view of the same split.

    Args:
        others: for each run the data it shall rank, as it reads it; None for its own.
        folds, shortlist, precision: as `TrainedRun.evaluate` has them.

    Returns:
        The recalls, and how good the shortlist was where one was asked for.

    Raises:
        InputError: no run, a shortlist of several, or runs whose splits hold other pairs.
    """
    if not runs:
        raise InputError("name at least one run to evaluate")
    if shortlist is not None and len(runs) > 1:
        raise InputError("--shortlist ranks with one run: several would each propose other candidates")
    views = [run.open_split(split, other) for run, other in zip(runs, others, strict=True)]
    for run, view in zip(runs[1:], views[1:], strict=True):
        _refuse_other_pairs(runs[0], views[0].table, run, view.table)
    total = None
    for run, view in zip(runs, views, strict=True):
        evaluator = RecallEvaluator(
            view, folds, shortlist=shortlist, precision=precision,
            progress=partial(tell, f"scoring {run.folder.name}"),
        )  # fmt: skip
        scores = evaluator.scores(run.models)
        total = scores if total is None else total + scores
    assert total is not None
    return evaluator.metrics(total / len(runs)), evaluator.shortlisted if shortlist is not None else None


def _refuse_other_pairs(first: TrainedRun, expected: PairTable, run: TrainedRun, table: PairTable) -> None:
    """The mean of two scores means something where both are of the same image and the same text."""
    same = np.array_equal(expected.image_rows, table.image_rows)
    if same and (
        expected.captions is None or table.captions is None or list(expected.captions) == list(table.captions)
    ):
        return
    sizes = (f"{len(t.image_rows):,} pairs of {len(np.unique(t.image_rows)):,} images" for t in (expected, table))
    said = f"{first.folder} ranks {next(sizes)} and {run.folder} {next(sizes)}" + (", other ones" if same else "")
    raise InputError(f"{said}; expected the same pairs for all runs, so name what they shall rank: --data")
