"""The epoch loop. It implements `Run` for whatever method it is given and names none.

A killed run goes on where it was: `last/state.pt` is written after every epoch and, in long epochs, between steps.
To go on inside an epoch, the method's `epoch` is called again from its beginning while the trainer answers from what
was saved: surveys return their saved arrays, sweeps skip the steps already taken.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from mispair.data.pairs import PairData
from mispair.data.streams import lockstep, survey_batches
from mispair.errors import InputError
from mispair.protocols import Companions, Evaluator, Method, RetrievalModel
from mispair.runtime.checkpoint import clear_leftovers, load_state, save_model, save_state
from mispair.runtime.engine import Engine
from mispair.runtime.history import write_epoch
from mispair.runtime.journal import Journal
from mispair.runtime.randomness import Streams, global_state, restore_global_state
from mispair.runtime.schedule import Rule, learning_rate
from mispair.runtime.signals import Signals
from mispair.section import Section
from mispair.types import Encoded, PairBatch


class TrainConfig(Section):
    """How long, in which batches, how fast."""

    epochs: int = Field(default=20, ge=1)  # warm-up included
    batch_size: int = Field(default=128, ge=2)  # of all processes together
    lr: float = Field(default=2e-4, gt=0.0)
    schedule: Rule = "step"
    decay_at: tuple[int, ...] = ()  # epochs at which the rate is multiplied by decay_factor
    decay_factor: float = Field(default=0.1, gt=0.0, le=1.0)
    patience: int | None = Field(default=None, ge=1)  # stop after so many epochs without a better dev score
    save_minutes: float = Field(default=5.0, gt=0.0)  # at most so much work is lost when a run is killed


@dataclass
class _Cursor:
    """How far the present epoch has come."""

    surveys: list[dict[str, NDArray[Any]]] = field(default_factory=list)
    sweeps: int = 0  # sweeps finished
    step: int = 0  # steps taken in the next one


@dataclass
class Progress:
    """How far the run has come; what `fit` returns."""

    epoch: int = 0  # the next one
    best: float = -math.inf
    best_epoch: int = -1
    best_metrics: dict[str, float] = field(default_factory=dict)
    stale: int = 0  # epochs since the best
    seconds: float = 0.0
    stopped: bool = False  # by a signal, before the end


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
        folder: Path,
        about: dict[str, str],
    ) -> None:
        if len(data) < config.batch_size:
            raise InputError(
                f"the train split has {len(data)} pairs, fewer than one batch of {config.batch_size}; "
                "set a smaller train.batch_size"
            )
        if config.batch_size % engine.world:
            raise InputError(f"train.batch_size={config.batch_size} does not divide among {engine.world} processes")
        self.config, self.engine, self.data, self.method = config, engine, data, method
        self.evaluator, self.journal, self.streams = evaluator, journal, streams
        self.folder, self.about = folder, about
        engine.adopt(method.modules, method.rate_scale)
        self.progress = Progress()
        self.rng = streams.torch("method/start")
        self.pairs, self.image_of = len(data), data.table.image_rows
        self._cursor, self._replay = _Cursor(), _Cursor()
        self._resume_point: dict[str, Any] | None = None
        self._epoch_start: dict[str, Any] = {}
        self._sums: dict[str, float | Tensor] = {}
        self._counts: dict[str, int] = {}
        self._columns: dict[str, NDArray[Any]] = {}
        self._signals = Signals()
        self._saved = self._began = time.monotonic()

    # ------------------------------------------------------------------------------------------------ the loop

    def resume(self) -> None:
        """Take up `last/state.pt`."""
        state = load_state(self.folder)
        if state["about"] != self.about:
            changed = [k for k, v in self.about.items() if state["about"].get(k) != v]
            raise InputError(
                f"{self.folder} was started with another {' and '.join(changed)}; "
                "resume it unchanged, or start a new run in another folder"
            )
        clear_leftovers(self.folder)
        self.progress = Progress(**state["progress"])
        for name, module in self.method.modules.items():
            module.load_state_dict(state["modules"][name])
        self.engine.restore(state["engine"])
        self.journal.cut(state["journal"])
        self._replay = _Cursor(
            [{k: v.numpy() for k, v in survey.items()} for survey in state["surveys"]], state["sweeps"], state["step"]
        )
        inside = state["surveys"] or state["sweeps"] or state["step"]
        self._resume_point = state if inside else None  # between epochs there is nothing to skip
        self.method.restore(state["method_epoch_start"])
        restore_global_state(state["global_rng"])

    def fit(self) -> Progress:
        """All epochs that are left. Afterwards the modules hold the last epoch; the best is in `model.safetensors`."""
        self._began = time.monotonic() - self.progress.seconds
        with self._signals:
            try:
                while self.progress.epoch < self.config.epochs and not self._gave_up():
                    self._epoch()
            except _StopError:
                self.progress.stopped = True
        return self.progress

    def _epoch(self) -> None:
        epoch, began = self.progress.epoch, time.monotonic()
        config = self.config
        rate = learning_rate(config.schedule, config.lr, epoch, config.epochs, config.decay_at, config.decay_factor)
        self.engine.set_learning_rate(rate)
        self.rng = self.streams.torch(f"method/epoch={epoch}")
        self._sums, self._counts, self._columns = {}, {}, {}
        self._cursor = _Cursor()
        self._epoch_start = self.method.state()
        self.method.epoch(epoch, self)
        self._replay, self._resume_point = _Cursor(), None
        logged = {key: float(value) / self._counts[key] for key, value in self._sums.items()}
        if self._columns and self.engine.leads:
            write_epoch(self.folder, epoch, self._columns)
        metrics = self._validate()
        self.progress.epoch += 1
        self.progress.seconds = time.monotonic() - self._began
        self._keep_best(epoch, metrics)
        self.journal.event("epoch", epoch=epoch, lr=rate, seconds=time.monotonic() - began, train=logged, dev=metrics)
        self._tell(epoch, logged, metrics)
        self._cursor = _Cursor()
        self._epoch_start = self.method.state()
        self._save()
        if self._signals.heard:
            raise _StopError

    def _validate(self) -> dict[str, float]:
        with self._mode(training=False), torch.no_grad():
            return self.evaluator([self.method.modules[name] for name in self.method.scorers])  # type: ignore[misc]

    def _keep_best(self, epoch: int, metrics: dict[str, float]) -> None:
        value = metrics[self.evaluator.primary]
        if value > self.progress.best:
            self.progress.best, self.progress.best_epoch, self.progress.stale = value, epoch, 0
            self.progress.best_metrics = metrics
            if self.engine.leads:
                path = self.folder / "model.safetensors"
                save_model(path, self.method.modules, self.method.scorers, self.about)
        else:
            self.progress.stale += 1

    def _gave_up(self) -> bool:
        return self.config.patience is not None and self.progress.stale >= self.config.patience

    def _tell(self, epoch: int, logged: dict[str, float], metrics: dict[str, float]) -> None:
        facts = " ".join(f"{key} {value:.4g}" for key, value in logged.items())
        star = " *" if self.progress.best_epoch == epoch else ""
        score = f"dev {self.evaluator.primary} {metrics[self.evaluator.primary]:.1f}{star}"
        self.journal.say(f"epoch {epoch + 1}/{self.config.epochs}  {score}  {facts}")

    # ---------------------------------------------------------------------------------- what a method may ask (Run)

    def encode(self, model: RetrievalModel, batch: PairBatch) -> tuple[Encoded, Encoded]:
        return self.engine.encode(model, batch)

    def encode_images(self, model: RetrievalModel, batch: PairBatch) -> Encoded:
        return self.engine.encode_images(model, batch)

    def encode_texts(self, model: RetrievalModel, batch: PairBatch) -> Encoded:
        return self.engine.encode_texts(model, batch)

    def survey(
        self, score: Callable[[PairBatch], Mapping[str, Tensor]], passing: tuple[str, ...] = ()
    ) -> dict[str, NDArray[Any]]:
        index = len(self._cursor.surveys)
        if index < len(self._replay.surveys):
            result = self._replay.surveys[index]
        else:
            result = self._survey(score, index)
        self._cursor.surveys.append({key: column for key, column in result.items() if key not in passing})
        return result

    def _survey(self, score: Callable[[PairBatch], Mapping[str, Tensor]], index: int) -> dict[str, NDArray[Any]]:
        size, count = self.config.batch_size, len(self.data)
        order = self.streams.numpy(f"survey/epoch={self.progress.epoch}/{index}")
        result: dict[str, NDArray[Any]] = {}
        batches = survey_batches(count, size, order)
        with self._mode(training=False), torch.no_grad(), self.engine.arithmetic():
            for ids, fresh in self.journal.track(batches, math.ceil(count / size), f"survey {self.progress.epoch + 1}"):
                for key, values in score(self._batch(ids)).items():
                    kind = np.float64 if values.ndim == 1 else np.float16  # vectors are many
                    column = result.setdefault(key, np.zeros((count, *values.shape[1:]), kind))
                    column[ids[fresh]] = values.double().cpu().numpy()[fresh]
                self._heed()
        return result

    def sweep(self, step: Callable[..., None], **streams: NDArray[np.int64] | Companions | None) -> None:
        index = self._cursor.sweeps
        if index >= self._replay.sweeps:
            skip = self._replay.step if index == self._replay.sweeps else 0
            self._sweep(step, streams, index, skip)
        self._cursor.sweeps, self._cursor.step = index + 1, 0

    def _sweep(
        self,
        step: Callable[..., None],
        streams: Mapping[str, NDArray[np.int64] | Companions | None],
        index: int,
        skip: int,
    ) -> None:
        everyone = np.arange(len(self.data))
        followers = {name: stream for name, stream in streams.items() if isinstance(stream, Companions)}
        ids = {
            name: everyone if stream is None else stream
            for name, stream in streams.items()
            if not isinstance(stream, Companions)
        }
        order = self.streams.numpy(f"order/epoch={self.progress.epoch}/{index}")
        total = math.ceil(len(next(iter(ids.values()))) / self.config.batch_size)
        batches = lockstep(ids, self.config.batch_size, order)
        for _ in range(skip):
            next(batches)
        self._take_up()
        began, start = time.monotonic(), skip

        def facts() -> str:
            rate = (self._cursor.step - start) * self.config.batch_size / max(time.monotonic() - began, 1e-9)
            return f"loss {self._latest('loss')}  {rate:,.0f} pairs/s"

        self._cursor.step = skip
        with self._mode(training=True):
            what = f"epoch {self.progress.epoch + 1}/{self.config.epochs}"
            for chosen in self.journal.track(batches, total, what, facts, skip):
                with self.engine.arithmetic():
                    batches_of = {name: self._batch(of) for name, of in chosen.items()}
                    for name, follower in followers.items():
                        batches_of[name] = self._batch(follower.choose(chosen), follower.side)
                    step(self, **batches_of)
                self._cursor.step += 1
                self._heed(between_steps=True)

    def minimize(self, module: str, loss: Tensor) -> None:
        with torch.autocast(self.engine.device.type, enabled=False):
            self.engine.minimize(module, loss)

    def restart(self, module: str, make: Callable[[], nn.Module]) -> None:
        if self._resume_point is None:  # otherwise what was saved comes from after this
            self.engine.restart(module, make())

    def log(self, **scalars: float | Tensor) -> None:
        for key, value in scalars.items():
            value = value.detach() if isinstance(value, Tensor) else value
            self._sums[key] = self._sums.get(key, 0.0) + value
            self._counts[key] = self._counts.get(key, 0) + 1

    def record(self, **columns: NDArray[Any]) -> None:
        self._columns.update(columns)

    def note(self, sentence: str) -> None:
        self.journal.note(sentence)

    # ------------------------------------------------------------------------------------------------- behind it

    def _batch(self, ids: NDArray[np.int64], side: Literal["images", "texts", "both"] = "both") -> PairBatch:
        share = len(ids) // self.engine.world
        assert share * self.engine.world == len(ids), "every process takes an equal share"
        mine = ids[self.engine.rank * share : (self.engine.rank + 1) * share]
        batch = self.engine.place(self.data.batch(mine, side))
        if self.engine.world == 1:
            return batch
        whole = torch.from_numpy(ids).to(batch.pair_ids.device)
        return PairBatch(batch.images, batch.image_mask, batch.texts, batch.text_mask, whole)

    def _latest(self, key: str) -> str:
        # Reading the mean of an accelerator's losses would wait for it, so only a CPU shows it between epochs.
        if key not in self._sums or self.engine.device.type != "cpu":
            return "..."
        return f"{float(self._sums[key]) / self._counts[key]:.4f}"

    @contextmanager
    def _mode(self, training: bool) -> Iterator[None]:
        before = {name: module.training for name, module in self.method.modules.items()}
        for module in self.method.modules.values():
            module.train(training)
        yield
        for name, module in self.method.modules.items():
            module.train(before[name])

    def _take_up(self) -> None:
        """Where skipping ends: be as the run was when it was saved."""
        if self._resume_point is None:
            return
        state, self._resume_point = self._resume_point, None
        self.method.restore(state["method"])
        self.rng.set_state(state["rng"])
        self._sums, self._counts = dict(state["sums"]), dict(state["counts"])

    def _heed(self, between_steps: bool = False) -> None:
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
            self.folder,
            {
                "about": self.about,
                "progress": dict(self.progress.__dict__),
                "modules": {name: module.state_dict() for name, module in self.method.modules.items()},
                "engine": self.engine.state(),
                "method": self.method.state(),
                "method_epoch_start": self._epoch_start,
                "global_rng": global_state(),
                "rng": self.rng.get_state(),
                "surveys": [{k: torch.from_numpy(v) for k, v in s.items()} for s in self._cursor.surveys],
                "sweeps": self._cursor.sweeps,
                "step": self._cursor.step,
                "sums": {k: float(v) for k, v in self._sums.items()},
                "counts": dict(self._counts),
                "journal": self.journal.size(),
            },
        )


class _StopError(Exception):
    """A signal asked the run to end; everything is saved."""
