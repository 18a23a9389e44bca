"""The epoch loop: train, validate, keep the best, save, stop when asked to. It names no method.

A killed run goes on where it was: its state is saved after every epoch and, in long epochs, between steps
(`mispair.runtime.epoch_run` says how an epoch is taken up inside).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from mispair.data.pair_data import PairData
from mispair.distributed import sharing
from mispair.errors import InputError
from mispair.evaluation_mode import evaluation_mode
from mispair.protocols import Evaluator, Method
from mispair.runtime.checkpoint import damaged, load_state, save_model, save_state
from mispair.runtime.engine import Engine
from mispair.runtime.epoch_run import EpochRun
from mispair.runtime.journal import Journal
from mispair.runtime.randomness import Streams, global_state, restore_global_state
from mispair.runtime.run_folder import RunFolder
from mispair.runtime.schedule import learning_rate
from mispair.runtime.signals import Signals
from mispair.runtime.train_config import TrainConfig
from mispair.types import Untrained

BEFORE_TRAINING = -1  # the epoch of a network that has not taken a step


@dataclass
class RunProgress:
    """How far the run has come; what `fit` returns."""

    epoch: int = 0  # the next one
    best: float = -math.inf
    best_epoch: int = BEFORE_TRAINING
    best_metrics: dict[str, float] = field(default_factory=dict)
    stale: int = 0  # epochs since the best
    seconds: float = 0.0
    stopped: bool = False  # by a signal, before the end


@dataclass(frozen=True)
class EpochReport:
    """What is known after an epoch; handed to whoever listens."""

    epoch: int  # from 0
    epochs: int  # in all
    dev: dict[str, float]  # what the evaluator found
    train: dict[str, float]  # means of what the method logged
    seconds: float
    best: bool  # better than every epoch before
    last: bool  # no other follows


OnEpoch = Callable[[EpochReport], None]


class Trainer:
    """Trains one method on one data set in one folder."""

    def __init__(
        self,
        config: TrainConfig,
        engine: Engine,
        data: PairData,
        method: Method,
        evaluator: Evaluator,
        journal: Journal,
        streams: Streams,
        folder: RunFolder,
        about: dict[str, str],
        on_epoch: OnEpoch | None = None,
        untrained: Callable[[], Untrained | None] | None = None,
    ) -> None:
        if len(data) < config.batch_size:
            raise InputError(
                f"the train split has {len(data)} pairs, fewer than one batch of {config.batch_size}; "
                "set a smaller train.batch_size"
            )
        if config.batch_size % engine.world:
            fits = max(config.batch_size // engine.world, 1) * engine.world
            raise InputError(
                f"train.batch_size={config.batch_size} does not divide among {engine.world} processes; "
                f"{fits} would (--batch-size {fits})"
            )
        self.config, self.engine, self.data, self.method = config, engine, data, method
        self.evaluator, self.journal, self.streams = evaluator, journal, streams
        self.folder, self.about, self.on_epoch = folder, about, on_epoch
        engine.adopt(method.modules, method.rate_scale, method.networks, config.average or method.teacher)
        self.progress = RunProgress()
        self.run = EpochRun(config, engine, data, method, journal, streams, self._heed, untrained)
        self._epoch_start: dict[str, Any] = {}
        self._signals = Signals()
        self._saved = self._began = time.monotonic()

    # ------------------------------------------------------------------------------------------------ the loop

    def resume(self) -> None:
        """Take up what was saved last."""
        state = load_state(self.folder.state_file)
        about = state.get("about")
        if not isinstance(about, dict):
            raise InputError(damaged(self.folder.state_file))
        changed = [key for key, value in self.about.items() if about.get(key) != value]
        if changed:
            raise InputError(
                f"{self.folder.path} cannot go on: what it was started with has changed ({', '.join(changed)}); "
                "put it back, or start a new run in another folder"
            )
        self.folder.clear_leftovers()
        try:
            self._restore(state)
        except (KeyError, TypeError, ValueError, RuntimeError, AttributeError, IndexError) as error:
            raise InputError(damaged(self.folder.state_file)) from error

    def _restore(self, state: dict[str, Any]) -> None:
        self.progress = RunProgress(**state["progress"])
        if type(self.progress.epoch) is not int or not 0 <= self.progress.epoch <= self.config.epochs:
            raise ValueError("the epoch lies outside the run")
        numbers = (self.progress.best, self.progress.seconds, *self.progress.best_metrics.values())
        if not all(type(value) in (int, float) for value in numbers):
            raise ValueError("the best epoch is described by no numbers")
        for name, module in self.method.modules.items():
            module.load_state_dict(state["modules"][name])
        self.engine.restore(state["engine"])
        self.run.restore(state)
        self.method.restore(state["method_epoch_start"])
        restore_global_state(state["global_rng"])
        self.journal.cut(state["journal"])

    def fit(self) -> RunProgress:
        """All epochs that are left. Afterwards the modules hold the last epoch; the best is in the model file."""
        self._began = time.monotonic() - self.progress.seconds
        with self._signals:
            try:
                self._judge_start()
                while self._more():
                    self._epoch()
            except _StopError:
                self.progress.stopped = True
        return self.progress

    def _judge_start(self) -> None:
        """Networks that know something before the first step are kept as they came where no epoch makes them better."""
        known = any(getattr(network, "starts_informed", False) for network in self.method.networks.values())
        if not known or self.progress.epoch or self.progress.best_metrics:
            return
        metrics = self._validate()
        self._keep_best(BEFORE_TRAINING, metrics)
        self.journal.event("start", dev=metrics)
        self.journal.say(f"before training  dev {self.evaluator.primary} {metrics[self.evaluator.primary]:.1f}")

    def _epoch(self) -> None:
        epoch, began, worked = self.progress.epoch, time.monotonic(), time.process_time()
        config = self.config
        rate = learning_rate(config.schedule, config.lr, epoch, config.epochs, config.decay_at, config.decay_factor)
        self.engine.set_learning_rate(rate)
        self.run.begin(epoch)
        self._epoch_start = self.method.state()
        self.method.epoch(epoch, self.run)
        logged = self.run.end()
        if self.run.columns and self.engine.leads:
            self.folder.write_split(epoch, self.run.columns)
        metrics = self._validate()
        self.progress.epoch += 1
        self.progress.seconds = time.monotonic() - self._began
        self._keep_best(epoch, metrics)
        seconds = time.monotonic() - began
        cpu = time.process_time() - worked  # of this process alone, whatever else the machine does
        spent = {"seconds": seconds, "cpu": cpu, "waited": self.run.waited}  # waited: for batches to be read
        self.journal.event("epoch", epoch=epoch, lr=rate, **spent, train=logged, dev=metrics)
        self._tell(epoch, logged, metrics)
        if self.on_epoch is not None:  # before saving: whoever is killed inside it is called again
            best, last = self.progress.best_epoch == epoch, not self._more()
            self.on_epoch(EpochReport(epoch, config.epochs, metrics, logged, seconds, best, last))
        self._epoch_start = self.method.state()
        self._save()
        if self._signals.heard:
            raise _StopError

    def _validate(self) -> dict[str, float]:
        shared = sharing(self.engine.world > 1)
        with self._kept(), evaluation_mode(*self.method.modules.values()), shared:
            return self.evaluator(list(self.method.networks.values()))

    def _kept(self) -> AbstractContextManager[None]:
        """The networks as the run judges and keeps them; a mean that a method alone asked for is for its surveys."""
        return self.engine.averaged() if self.config.average else nullcontext()

    def _keep_best(self, epoch: int, metrics: dict[str, float]) -> None:
        value = metrics[self.evaluator.primary]
        if value > self.progress.best:
            self.progress.best, self.progress.best_epoch, self.progress.stale = value, epoch, 0
            self.progress.best_metrics = metrics
            if self.engine.leads:
                with self._kept():
                    save_model(self.folder.model_file, self.method.networks, self.about)
        else:
            self.progress.stale += 1

    def _more(self) -> bool:
        gave_up = self.config.patience is not None and self.progress.stale >= self.config.patience
        return self.progress.epoch < self.config.epochs and not gave_up

    def _tell(self, epoch: int, logged: dict[str, float], metrics: dict[str, float]) -> None:
        facts = " ".join(f"{key} {value:.4g}" for key, value in logged.items())
        star = " *" if self.progress.best_epoch == epoch else ""
        score = f"dev {self.evaluator.primary} {metrics[self.evaluator.primary]:.1f}{star}"
        self.journal.say(f"epoch {epoch + 1}/{self.config.epochs}  {score}  {facts}")

    def _heed(self, between_steps: bool) -> None:
        """Save when it is time, stop when asked to."""
        if not between_steps:
            if self._signals.heard:
                raise _StopError  # inside a survey nothing has changed since the last save but the survey itself
            return
        if self._signals.heard or time.monotonic() - self._saved > 60 * self.config.save_minutes:
            self._save()
        if self._signals.heard:
            raise _StopError

    def _save(self) -> None:
        self._saved = time.monotonic()
        if not self.engine.leads:
            return
        self.progress.seconds = time.monotonic() - self._began
        save_state(
            self.folder.state_file,
            {
                "about": self.about,
                "progress": dict(self.progress.__dict__),
                "modules": {name: module.state_dict() for name, module in self.method.modules.items()},
                "engine": self.engine.state(),
                "method": self.method.state(),
                "method_epoch_start": self._epoch_start,
                "global_rng": global_state(),
                **self.run.state(),
                "journal": self.journal.size(),
            },
        )


class _StopError(Exception):
    """A signal asked the run to end; everything is saved."""
