"""EpochRun: what the trainer offers a method during an epoch (`mispair.protocols.Run`), and how far the epoch has come.

To go on inside an epoch, the method's `epoch` is called again from its beginning while this answers from what was
saved: surveys return their saved arrays, sweeps skip the steps already taken.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mispair.data.pair_data import PairData
from mispair.data.streams import lockstep, survey_batches
from mispair.data.thinning import crop_batch, halve_texts, thin_batch
from mispair.data.untrained import untrained_vectors
from mispair.device_to_host import to_host
from mispair.distributed import sharing
from mispair.evaluation_mode import evaluation_mode, training_mode
from mispair.prefetch import map_ahead
from mispair.protocols import Companions, Method, RetrievalModel
from mispair.runtime.engine import Engine
from mispair.runtime.journal import Journal
from mispair.runtime.randomness import Streams
from mispair.runtime.train_config import TrainConfig
from mispair.types import Encoded, PairBatch, Untrained

# Save or stop if it is time: called after every step (True) and after every batch of a survey (False).
Heed = Callable[[bool], None]
AHEAD = 3  # batches under way: one that is used, one that is ready, one that is read
S = TypeVar("S")
T = TypeVar("T")


@dataclass
class _Cursor:
    """How far the present epoch has come."""

    surveys: list[dict[str, NDArray[Any]]] = field(default_factory=list)
    sweeps: int = 0  # sweeps finished
    step: int = 0  # steps taken in the next one


class EpochRun:
    """Lives as long as its trainer; `begin` and `end` enclose an epoch."""

    def __init__(
        self,
        config: TrainConfig,
        engine: Engine,
        data: PairData,
        method: Method,
        journal: Journal,
        streams: Streams,
        heed: Heed,
        untrained: Callable[[], Untrained | None] | None = None,
    ) -> None:
        self._untrained = untrained or partial(untrained_vectors, data)
        self.config, self.engine, self.data, self.method = config, engine, data, method
        self.journal, self.streams, self._heed = journal, streams, heed
        self.epoch = 0
        self.rng = streams.torch("method/start")
        self.pairs, self.image_of = len(data), data.table.image_rows
        self.known = data.table.known
        weights = data.table.weights
        self.weights = None if weights is None else torch.from_numpy(weights).to(engine.device)
        self.columns: dict[str, NDArray[Any]] = {}  # what the method recorded, by pair id
        self._cursor, self._replay = _Cursor(), _Cursor()
        self._resume_point: dict[str, Any] | None = None
        self._sums: dict[str, float | Tensor] = {}
        self._counts: dict[str, int] = {}
        self.waited = 0.0  # seconds of this epoch in which a step waited for its batch

    def begin(self, epoch: int) -> None:
        """Start an epoch: its generator, and nothing logged or recorded yet."""
        self.epoch = self.engine.epoch = epoch
        self.rng = self.streams.torch(f"method/epoch={epoch}")
        self._sums, self._counts, self.columns, self.waited = {}, {}, {}, 0.0
        self._cursor = _Cursor()

    def end(self) -> dict[str, float]:
        """Means of what the method logged. A save from here on is one between epochs."""
        self._replay, self._resume_point, self._cursor = _Cursor(), None, _Cursor()
        return {key: _number(value) / self._counts[key] for key, value in self._sums.items()}

    def state(self) -> dict[str, Any]:
        """What is needed to go on inside the epoch."""
        return {
            "rng": self.rng.get_state(),
            "surveys": [{k: torch.from_numpy(v) for k, v in s.items()} for s in self._cursor.surveys],
            "sweeps": self._cursor.sweeps,
            "step": self._cursor.step,
            "sums": {k: _number(v) for k, v in self._sums.items()},
            "counts": dict(self._counts),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`, which holds "method" too, as it was then."""
        self._replay = _Cursor(
            [{k: v.numpy() for k, v in survey.items()} for survey in state["surveys"]], state["sweeps"], state["step"]
        )
        inside = state["surveys"] or state["sweeps"] or state["step"]
        self._resume_point = state if inside else None  # between epochs there is nothing to skip

    # ------------------------------------------------------------------------------------------ what a method may ask

    def untrained(self) -> Untrained | None:
        with sharing(self.engine.world > 1):
            return self._untrained()

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
        order = self.streams.numpy(f"survey/epoch={self.epoch}/{index}")
        result: dict[str, NDArray[Any]] = {}
        batches = survey_batches(count, size, order)
        with self.engine.averaged(), evaluation_mode(*self.method.modules.values()), self.engine.arithmetic():
            ahead = self._ahead(lambda chosen: self._read(chosen.pair_ids), batches)
            what = f"survey {self.epoch + 1}"
            for (ids, fresh), batch in self.journal.track(ahead, math.ceil(count / size), what):
                for key, values in score(self.engine.place(batch)).items():
                    kind = np.float64 if values.ndim == 1 else np.float16  # vectors are many
                    column = result.setdefault(key, np.zeros((count, *values.shape[1:]), kind))
                    column[ids[fresh]] = to_host(values).double().numpy()[fresh]
                self._heed(False)
        return result

    def once(self, compute: Callable[[], dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
        index = len(self._cursor.surveys)
        result = self._replay.surveys[index] if index < len(self._replay.surveys) else compute()
        self._cursor.surveys.append(result)
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
        order = self.streams.numpy(f"order/epoch={self.epoch}/{index}")
        total = math.ceil(len(next(iter(ids.values()))) / self.config.batch_size)
        batches = lockstep(ids, self.config.batch_size, order)
        for _ in range(skip):
            next(batches)
        self._take_up()
        began, start = time.monotonic(), skip

        def facts() -> str:
            rate = (self._cursor.step - start) * self.config.batch_size / max(time.monotonic() - began, 1e-9)
            return f"loss {self._latest('loss')}  {rate:,.0f} pairs/s"

        def read(chosen: dict[str, NDArray[np.int64]]) -> dict[str, PairBatch]:
            batches = {name: self._read(of) for name, of in chosen.items()}
            return batches | {name: self._read(f.choose(chosen), f.side) for name, f in followers.items()}

        self._cursor.step = skip
        with training_mode(*self.method.modules.values()):
            what = f"epoch {self.epoch + 1}/{self.config.epochs}"
            for _, batches_of in self.journal.track(self._ahead(read, batches), total, what, facts, skip):
                with self.engine.arithmetic():
                    placed = {name: self.engine.place(batch) for name, batch in batches_of.items()}
                    step(self, **self._thinned(placed, index))
                    self.engine.end_step()
                self._cursor.step += 1
                self._heed(True)

    def halves(self, batch: PairBatch) -> tuple[PairBatch, PairBatch]:
        return halve_texts(batch, self._held(batch), int(torch.randint(2**62, (), generator=self.rng)))

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
        self.columns.update(columns)

    def note(self, sentence: str) -> None:
        self.journal.note(sentence)

    # ------------------------------------------------------------------------------------------------- behind it

    def _ahead(self, read: Callable[[S], T], chosen: Iterable[S]) -> Iterator[tuple[S, T]]:
        """What was chosen and what was read of it, in order; a thread reads while the step before is taken."""
        with closing(map_ahead(read, chosen, 1, AHEAD)) as batches:
            while True:
                asked = time.monotonic()
                batch = next(batches, None)
                self.waited += time.monotonic() - asked
                if batch is None:
                    return
                yield batch

    def _read(self, ids: NDArray[np.int64], side: Literal["images", "texts", "both"] = "both") -> PairBatch:
        """The pairs `ids`, on the host; of their features this process holds its share."""
        share = len(ids) // self.engine.world
        assert share * self.engine.world == len(ids), "every process takes an equal share"
        mine = slice(self.engine.rank * share, (self.engine.rank + 1) * share)
        batch = self.data.batch(ids, side, mine)
        return batch.pinned() if self.engine.device.type == "cuda" else batch

    def _thinned(self, batches: dict[str, PairBatch], sweep: int) -> dict[str, PairBatch]:
        """The batches of a step without some of their regions and words."""
        regions, words = self.config.drop_regions, self.config.drop_words
        shape = getattr(self.data.images, "shape", None) if self.config.crop < 1 else None
        if not regions and not words and shape is None:
            return batches
        place = f"thinning/epoch={self.epoch}/{sweep}/{self._cursor.step}"
        salt = int(self.streams.numpy(place).integers(0, 2**62))
        thinned = {name: thin_batch(batch, self._held(batch), regions, words, salt) for name, batch in batches.items()}
        if shape is None:
            return thinned
        return {name: crop_batch(b, self._held(b), shape, self.config.crop, salt) for name, b in thinned.items()}

    def _held(self, batch: PairBatch) -> Tensor:
        """The pairs whose features this process holds of a batch, (B / world,)."""
        share = len(batch.pair_ids) // self.engine.world
        return batch.pair_ids[self.engine.rank * share : (self.engine.rank + 1) * share]

    def _latest(self, key: str) -> str:
        # Reading the mean of an accelerator's losses would wait for it, so only a CPU shows it between epochs.
        if key not in self._sums or self.engine.device.type != "cpu":
            return "..."
        return f"{_number(self._sums[key]) / self._counts[key]:.4f}"

    def _take_up(self) -> None:
        """Where skipping ends: be as the run was when it was saved."""
        if self._resume_point is None:
            return
        state, self._resume_point = self._resume_point, None
        self.method.restore(state["method"])
        self.rng.set_state(state["rng"])
        self._sums, self._counts = dict(state["sums"]), dict(state["counts"])


def _number(value: float | Tensor) -> float:
    return float(to_host(value) if isinstance(value, Tensor) else value)
