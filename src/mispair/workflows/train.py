"""Train one run in one folder: the one function behind every verb, script and test that trains."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from mispair.atomic import remove_quietly, write_text
from mispair.config.load import dump_config
from mispair.config.schema import RunConfig
from mispair.data import PairData
from mispair.data.embedded_folder import FAILED
from mispair.encoders.pipeline import write_failed
from mispair.errors import InputError
from mispair.protocols import Evaluator, Method
from mispair.retrieval_module import RetrievalModule
from mispair.runtime.checkpoint import damaged
from mispair.runtime.engine import Engine
from mispair.runtime.journal import Board, Journal
from mispair.runtime.lock import claimed
from mispair.runtime.run_folder import GO_ON, RunFolder
from mispair.runtime.trainer import EpochReport, OnEpoch, RunProgress
from mispair.workflows.assemble import Training, assemble
from mispair.workflows.finish import finish
from mispair.workflows.networks import Network
from mispair.workflows.rematching_truth import write_rematching


@dataclass(frozen=True)
class Result:
    """A training that has ended, or was stopped by a signal and saved."""

    folder: RunFolder
    config: RunConfig
    training: Training = field(repr=False)
    progress: RunProgress
    summary: dict[str, Any]  # what the run wrote of itself; empty where it was stopped or not asked to

    @property
    def stopped(self) -> bool:
        return self.progress.stopped

    @property
    def leads(self) -> bool:
        """Whether this process is the one that writes and prints."""
        return self.training.trainer.engine.leads

    @property
    def method(self) -> Method:
        """With its modules as the last epoch left them."""
        return self.training.trainer.method

    @property
    def networks(self) -> list[RetrievalModule]:
        """Those that score, as the last epoch left them, in evaluation mode; the best epoch's are in the folder."""
        return [network.eval() for network in self.method.networks.values()]


def train(
    config: RunConfig,
    folder: Path,
    *,
    resume: bool = False,
    on_epoch: OnEpoch | None = None,
    evaluator: Evaluator | None = None,
    data: PairData | None = None,
    network: Network | None = None,
    engine: Engine | None = None,
    console: Console | None = None,
    interval: float = 30.0,
    board: bool = False,
    summarize: bool = True,
) -> Result:
    """Train `config` into `folder`, or go on with what is there.

    Args:
        resume: go on from the last save; from the beginning where the run was killed before its first.
        on_epoch: called with an `EpochReport` after every epoch, before it is saved.
        evaluator: judges each epoch instead of the recall on the dev split.
        data: train on these pairs instead of the train split.
        network: a network of one's own, where the configuration's model is "own".
        engine: device and optimizers, where they are not to be made from the configuration.
        console: where a person follows the training; None for silence.
        interval: seconds between two lines where there is no terminal.
        board: draw curves for TensorBoard where it is installed.
        summarize: score the best epoch on test and write the summary and the model card at the end.

    Raises:
        InputError: the data, the configuration or the folder cannot be used. A run that was not saved once is then
            removed again.
    """
    run = RunFolder(Path(folder))
    _refuse_folder(run, resume)
    engine = engine or Engine(config.engine)
    if console is None or not engine.leads:
        console = Console(quiet=True)
    with Journal(run.journal_file if engine.leads else None, console, interval) as journal:
        training = assemble(config, run, engine, journal, data=data, evaluator=evaluator, network=network)
        trainer = training.trainer
        trainer.on_epoch = _listening(training, on_epoch)
        with _claimed(run, engine, resume):
            if resume and run.resumable:
                trainer.resume()
                if engine.leads:
                    _same_words(training)
            elif engine.leads:
                _begin(training)
                for note in training.notes:
                    journal.note(note)
            journal.board = _board(run) if board and engine.leads else None
            progress = trainer.fit()
            done = summarize and engine.leads and not progress.stopped
            summary = finish(training) if done else {}
    return Result(run, config, training, progress, summary)


def _refuse_folder(run: RunFolder, resume: bool) -> None:
    if resume:
        run.refuse_unless_begun()
        if not run.resumable and os.path.lexists(run.state_file):
            raise InputError(damaged(run.state_file))
        if not run.resumable and run.finished:  # beginning again would throw away what is done
            raise InputError(f"{run.path} is finished and kept no state: there is nothing to go on with")
    elif run.begun:
        raise InputError(f"{run.path} already holds a run; choose another folder, or go on with --resume {run.path}")


@contextlib.contextmanager
def _claimed(run: RunFolder, engine: Engine, resume: bool) -> Iterator[None]:
    """The folder is ours while inside; one in which nothing was saved is left as it was found."""
    if not engine.leads:
        yield
        return
    new, ours = not run.path.exists(), False
    try:
        with claimed(run.lock_file, "mispair train"):
            _refuse_folder(run, resume)  # again: somebody may have begun between the first look and the lock
            ours = True
            yield
    except InputError as error:
        if not ours or resume or run.resumable:
            raise
        for path in [run.path] if new else [*run.written, run.path / FAILED]:
            remove_quietly(path)
        raise InputError(str(error).replace(GO_ON, "run the command again")) from error


def _same_words(training: Training) -> None:
    """Whoever loads the run reads captions by its vocabulary.json: it is the one it was trained with, or refused."""
    run, vocabulary = training.folder, training.data.vocabulary
    if vocabulary is None:
        return
    written = run.vocabulary
    if written is None:
        write_text(run.vocabulary_file, vocabulary.to_json())
    elif written.content_hash != vocabulary.content_hash:
        raise InputError(
            f"{run.vocabulary_file} is not the vocabulary this run was started with; delete it, and --resume writes it"
            " again"
        )


def _begin(training: Training) -> None:
    """Write down what is being done; the configuration last, since it makes the folder a run."""
    run, vocabulary = training.folder, training.data.vocabulary
    run.clear_leftovers()
    remove_quietly(run.journal_file)
    if vocabulary is not None:
        write_text(run.vocabulary_file, vocabulary.to_json())
    if training.failed:
        write_failed(run.path / FAILED, training.failed)
    write_text(run.config_file, dump_config(training.config, run.path))


def _listening(training: Training, on_epoch: OnEpoch | None) -> OnEpoch:
    def hear(report: EpochReport) -> None:
        if report.last and training.trainer.engine.leads:
            write_rematching(training, report.epoch)
        if on_epoch is not None:
            on_epoch(report)

    return hear


def _board(run: RunFolder) -> Board | None:
    """A TensorBoard writer where the extra is installed."""
    import importlib.util

    if importlib.util.find_spec("tensorboard") is None:
        return None
    from torch.utils.tensorboard import SummaryWriter

    writer: Board = SummaryWriter(str(run.board_folder))
    return writer
