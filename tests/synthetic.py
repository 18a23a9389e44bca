"""Tiny data, tiny configurations and a fake Run, so that methods and trainer are tested in moments."""

from __future__ import annotations

import os
import signal

import numpy as np
import torch

from mispair.config.load import load_config
from mispair.data import DataConfig, ScenesConfig, open_split
from mispair.data.thinning import halve_texts
from mispair.data.untrained import untrained_vectors
from mispair.protocols import Companions
from mispair.runtime.engine import Engine
from mispair.types import PairBatch

TINY = (
    "data.scenes.pictures=120",
    "data.min_count=1",
    "model.embed=32",
    "model.word_dim=16",
    "train.batch_size=32",
    "train.epochs=4",
    "train.lr=0.003",
    "method.warmup_epochs=1",
)


def tiny_config(*sets):
    """vse on a handful of scenes; `sets` are applied last."""
    return load_config(None, [*TINY, *sets])


def tiny_data(split="train", rate=0.0, pictures=120):
    noise = {"rate": rate} if rate else None
    config = DataConfig(path="scenes", scenes=ScenesConfig(pictures=pictures), min_count=1, noise=noise)
    return open_split(config, split)


def stopping_engine(config, stop_after):
    """An engine that asks for the end, as SIGTERM does, after so many optimizer steps; None: it does not."""
    engine = Engine(config)
    minimize = engine.minimize

    def watched(module, loss):
        minimize(module, loss)
        if engine.steps == stop_after:
            os.kill(os.getpid(), signal.SIGTERM)

    engine.minimize = watched
    return engine


class RecordingRun:
    """Offers what a trainer offers and remembers what was asked; one batch per stream, no optimizer."""

    def __init__(self, data, batch_size=32):
        self.data, self.batch_size = data, batch_size
        self.rng = torch.Generator().manual_seed(0)
        self.updates, self.losses, self.logged, self.streams, self.notes = [], [], {}, [], []
        self.columns = {}
        self.pairs, self.image_of, self.restarts = len(data), data.table.image_rows, []
        self.weights = self.known = None

    def untrained(self):
        return untrained_vectors(self.data)

    def encode(self, model, batch):
        return model.encode_images(batch.images, batch.image_mask), model.encode_texts(batch.texts, batch.text_mask)

    def encode_images(self, model, batch):
        return model.encode_images(batch.images, batch.image_mask)

    def encode_texts(self, model, batch):
        return model.encode_texts(batch.texts, batch.text_mask)

    def survey(self, score, passing=()):
        found = {}
        for start in range(0, len(self.data), self.batch_size):
            ids = np.arange(start, start + self.batch_size) % len(self.data)
            with torch.no_grad():
                for key, values in score(self.data.batch(ids)).items():
                    column = found.setdefault(key, np.zeros((len(self.data), *values.shape[1:])))
                    column[ids] = values.double().numpy()
        return found

    def once(self, compute):
        return compute()

    def sweep(self, step, **streams):
        followers = {name: stream for name, stream in streams.items() if isinstance(stream, Companions)}
        own = {name: stream for name, stream in streams.items() if name not in followers}
        self.streams.append({name: None if ids is None else np.asarray(ids) for name, ids in own.items()})
        everyone = np.arange(len(self.data))
        ids = {name: (everyone if stream is None else stream)[: self.batch_size] for name, stream in own.items()}
        batches = {name: self.data.batch(chosen) for name, chosen in ids.items()}
        for name, follower in followers.items():
            batches[name] = self.data.batch(follower.choose(ids), follower.side)
        step(self, **batches)

    def halves(self, batch):
        return halve_texts(batch, batch.pair_ids, int(torch.randint(2**62, (), generator=self.rng)))

    def minimize(self, module, loss):
        assert loss.ndim == 0
        assert torch.isfinite(loss)
        loss.backward()
        self.updates.append(module)
        self.losses.append(loss.item())

    def restart(self, module, make):
        self.restarts.append((module, make()))

    def log(self, **scalars):
        self.logged.update({key: float(torch.as_tensor(value).detach()) for key, value in scalars.items()})

    def record(self, **columns):
        self.columns.update(columns)

    def note(self, sentence):
        self.notes.append(sentence)


def same_batch(left: PairBatch, right: PairBatch) -> bool:
    return all(torch.equal(getattr(left, name), getattr(right, name)) for name in PairBatch.__slots__)
