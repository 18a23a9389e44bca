"""Cross-fitting: every pair is scored by a network that was trained without its image.

Letters: N pairs, Z re-paired ones, F kinds of evidence.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mispair.auditing.judge import Evidence, pair_at_random
from mispair.auditing.similarity import Rows
from mispair.auditing.space import Cells, space_of
from mispair.config.schema import RunConfig
from mispair.data import PairData
from mispair.data.source import FEWEST
from mispair.errors import InputError
from mispair.progress import Tell
from mispair.protocols import Evaluator
from mispair.runtime.engine import Engine
from mispair.runtime.randomness import Streams
from mispair.runtime.trainer import EpochReport
from mispair.workflows.best_models import best_models
from mispair.workflows.networks import Network
from mispair.workflows.train import train

Floats = NDArray[np.float64]


def cross_fit(
    config: RunConfig, data: PairData, evaluator: Evaluator, folds: int, tell: Tell, network: Network | None = None
) -> Evidence:
    """Scores, ranks and evidence of given pairs, evidence of re-paired ones, by networks that have not seen them.

    A fold holds whole images, and its candidates are its own images and texts: no other network has learned those.
    Ranks among them are scaled up to those among all.
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
    repaired: list[Floats] = []
    repaired_cells: list[tuple[Rows, Rows]] = []
    shown = Cells.empty(len(data))
    tell("cross-fitting, epochs", 0, folds * config.train.epochs)
    for k in range(folds):
        part = _part(data, np.flatnonzero(fold != k))
        count = partial(_count, tell, k * config.train.epochs, folds * config.train.epochs)
        with tempfile.TemporaryDirectory() as scratch:
            result = train(
                config,
                Path(scratch) / "run",
                data=part,
                evaluator=evaluator,
                network=network,
                engine=Engine(config.engine, alone=True),  # under torchrun one process judges
                on_epoch=count,
                summarize=False,
            )
            if result.stopped:
                raise KeyboardInterrupt
            models = best_models(result.training)
        held = np.flatnonzero(fold == k)
        rows, where_image = np.unique(data.table.image_rows[held], return_inverse=True)
        cols, where_text = np.unique(data.table.text_rows[held], return_inverse=True)
        space = space_of(models, data, image_rows=rows, text_rows=cols)
        others = pair_at_random(where_image, where_text)
        cells = space.measure(np.concatenate([where_image, others[0]]), np.concatenate([where_text, others[1]]))
        evidence = cells.evidence(len(rows), len(cols))
        if given is None:
            given = np.empty((len(data), evidence.shape[1]))
        given[held] = evidence[: len(held)]
        repaired.append(evidence[len(held) :])
        repaired_cells.append((rows[others[0]], cols[others[1]]))
        own = cells.take(slice(len(held)))
        caption_rank = _scaled(own.caption_rank, len(cols), len(data.image_of_text))
        image_rank = _scaled(own.image_rank, len(rows), images)
        shown.put(held, replace(own, caption_rank=caption_rank, image_rank=image_rank))
    assert given is not None
    image_rows, text_rows = (np.concatenate([cells[side] for cells in repaired_cells]) for side in (0, 1))
    return Evidence(shown, given, np.concatenate(repaired), image_rows, text_rows)


def _scaled(rank: NDArray[np.int64], among: int, of: int) -> NDArray[np.int64]:
    """Ranks among some candidates as ranks among all."""
    return np.asarray(1 + np.rint((rank - 1) * ((of - 1) / max(among - 1, 1))), np.int64)


def _part(data: PairData, pairs: NDArray[np.int64]) -> PairData:
    return replace(data, table=data.table.without_truth(pairs))


def _count(tell: Tell, before: int, total: int, report: EpochReport) -> None:
    tell("cross-fitting, epochs", before + report.epoch + 1, total)
