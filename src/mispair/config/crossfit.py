"""Cross-fitting: every pair is scored by a network that was trained without its image.

Letters: N pairs, Z re-paired ones, F kinds of evidence.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mispair.audit.judge import FEWEST, repair
from mispair.audit.scan import Tell, space_of
from mispair.config.assemble import input_sizes
from mispair.config.schema import RunConfig
from mispair.data import PairData
from mispair.errors import InputError
from mispair.methods import build_method
from mispair.models import build_model
from mispair.protocols import Evaluator, RetrievalModel
from mispair.runtime.engine import Engine
from mispair.runtime.journal import Journal
from mispair.runtime.randomness import Streams, seed_globally
from mispair.runtime.trainer import Trainer

Floats = NDArray[np.float64]


def cross_fit(config: RunConfig, data: PairData, evaluator: Evaluator, folds: int, tell: Tell) -> tuple[Floats, Floats]:
    """Evidence of the given pairs (N, F) and of re-paired ones (Z, F), each by a network that has not seen them.

    A fold holds whole images, and its candidates are its own images and texts: no other network has learned those.
    """
    images = len(data.images)
    most = images // FEWEST
    if most < 2:
        raise InputError(f"cross-fitting needs at least {2 * FEWEST} images, got {images:,}; leave --folds out")
    if not 2 <= folds <= most:
        raise InputError(f"--folds must be between 2 and {most:,} for {images:,} images, got {folds}")
    fold_of_image = Streams(config.seed).numpy("audit/folds").permutation(images) % folds
    fold = fold_of_image[data.table.image_rows]
    given: Floats | None = None
    repaired = []
    for k in range(folds):
        told = _Told(evaluator, tell, k * config.train.epochs, folds * config.train.epochs)
        models = _train(config, _part(data, np.flatnonzero(fold != k)), data, told)
        held = np.flatnonzero(fold == k)
        rows, where_image = np.unique(data.table.image_rows[held], return_inverse=True)
        cols, where_text = np.unique(data.table.text_rows[held], return_inverse=True)
        space = space_of(models, data, image_rows=rows, text_rows=cols)
        others = repair(where_image, where_text)
        cells = space.look(np.concatenate([where_image, others[0]]), np.concatenate([where_text, others[1]]))
        evidence = cells.evidence(len(rows), len(cols))
        if given is None:
            given = np.empty((len(data), evidence.shape[1]))
        given[held] = evidence[: len(held)]
        repaired.append(evidence[len(held) :])
    assert given is not None
    return given, np.concatenate(repaired)


class _Told:
    """An evaluator that says how many epochs of all folds are done: it is called after each."""

    def __init__(self, evaluator: Evaluator, tell: Tell, done: int, total: int) -> None:
        self.evaluator, self.tell, self.done, self.total = evaluator, tell, done, total
        self.primary = evaluator.primary

    def __call__(self, models: Sequence[RetrievalModel]) -> dict[str, float]:
        self.done += 1
        self.tell("cross-fitting, epochs", self.done, self.total)
        return self.evaluator(models)


def _part(data: PairData, pairs: NDArray[np.int64]) -> PairData:
    table = replace(
        data.table, image_rows=data.table.image_rows[pairs], text_rows=data.table.text_rows[pairs], truth=None
    )
    return replace(data, table=table)


def _train(config: RunConfig, part: PairData, data: PairData, evaluator: Evaluator) -> list[RetrievalModel]:
    seed_globally(config.seed)
    sizes = input_sizes(data)
    method = build_method(config.method, lambda: build_model(config.model, sizes), config.train.batch_size)
    with tempfile.TemporaryDirectory() as folder, Journal(None) as journal:
        progress = Trainer(
            config.train,
            Engine(config.engine),
            part,
            method,
            evaluator,
            journal,
            Streams(config.seed),
            Path(folder),
            {},
        ).fit()
    if progress.stopped:
        raise KeyboardInterrupt
    return [method.modules[name].eval() for name in method.scorers]  # type: ignore[misc]
