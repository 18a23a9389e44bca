"""Several runs that read the same data as one model: the mean of their scores ranks. One SGR and one SAF are SGRAF."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mispair.errors import InputError
from mispair.workflows.trained_run import TrainedRun

_OF_TRAINING = {"noise", "weights", "decisions", "limit", "dev_limit", "test_limit"}  # not how an item is read


@dataclass(frozen=True, eq=False, repr=False)
class JoinedRuns(TrainedRun):
    """The networks of several runs, under the configuration and the words of the first."""

    others: tuple[TrainedRun, ...] = field(default=())

    @property
    def model_files(self) -> tuple[Path, ...]:
        return (*super().model_files, *(file for run in self.others for file in run.model_files))

    @property
    def folders(self) -> tuple[Path, ...]:
        return (*super().folders, *(run.folder for run in self.others))

    def __repr__(self) -> str:
        return f"JoinedRuns({' + '.join(str(folder) for folder in self.folders)}: {len(self.models)} networks)"


def join_runs(runs: Sequence[TrainedRun]) -> TrainedRun:
    """One run as it is; several as one that scores by their mean.

    Raises:
        InputError: no run; or runs that read other data, other words, or have unequal numbers of networks.
    """
    if not runs:
        raise InputError("name at least one run")
    first, *others = runs
    if not others:
        return first
    for run in others:
        _refuse_other_inputs(first, run)
    models = [model for run in runs for model in run.models]
    return JoinedRuns(first.files, first.config, first.vocabulary, models, first.about, others=tuple(others))


def _refuse_other_inputs(first: TrainedRun, run: TrainedRun) -> None:
    mine, theirs = (_reads(one) for one in (first, run))
    for name, value in theirs.items():
        if value != mine[name]:
            raise InputError(
                f"{first.folder} and {run.folder} cannot be searched together: {name} is {mine[name]} in the one and "
                f"{value} in the other; train both on the same data"
            )


def _reads(run: TrainedRun) -> dict[str, Any]:
    """What must be the same for the networks of two runs to be given the same items and weigh the same."""
    data = run.config.data.model_dump(exclude=_OF_TRAINING)
    words = "none" if run.vocabulary is None else run.vocabulary.content_hash[:12]
    return {f"data.{name}": value for name, value in data.items()} | {
        "the vocabulary": words,
        "the number of networks": len(run.models),
    }
