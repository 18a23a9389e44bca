"""Recalls of one run, or of several whose scores are averaged."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mispair.data import DataConfig
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
        InputError: no run, or a shortlist of several.
    """
    if not runs:
        raise InputError("name at least one run to evaluate")
    if shortlist is not None and len(runs) > 1:
        raise InputError("--shortlist ranks with one run: several would each propose other candidates")
    total = None
    for run, other in zip(runs, others, strict=True):
        evaluator = RecallEvaluator(
            run.open_split(split, other), folds, shortlist=shortlist, precision=precision,
            progress=partial(tell, f"scoring {run.folder.name}"),
        )  # fmt: skip
        scores = evaluator.scores(run.models)
        total = scores if total is None else total + scores
    assert total is not None
    return evaluator.metrics(total / len(runs)), evaluator.shortlisted if shortlist is not None else None
