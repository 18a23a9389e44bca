"""How good are rematches, where the truth is known: the share of transported mass that lands on true partners."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import cast

import numpy as np
from numpy.typing import NDArray

from mispair.atomic import write_text
from mispair.data import scene_truth
from mispair.data.streams import lockstep
from mispair.evaluation_mode import evaluation_mode
from mispair.protocols import RetrievalModel, Run
from mispair.runtime.alignment_file import RematchingShares
from mispair.runtime.randomness import Streams
from mispair.types import Encoded, PairBatch
from mispair.workflows.assemble import Training


def write_rematching(training: Training, epoch: int) -> None:
    """What rematching did in `epoch`, beside the run: it depends on what the method holds in memory just now.

    Called before the last epoch is saved, so that a run killed at any moment writes the same.
    """
    ranked = ranked_alignments(training)
    if ranked is None:
        return
    judged = judge_rematching(training)
    content = {"epochs": {str(epoch): ranked}, "rematching": None if judged is None else judged.model_dump()}
    write_text(training.folder.alignment_file, json.dumps(content) + "\n", "go on with --resume")


def judge_rematching(training: Training, most: int = 40) -> RematchingShares | None:
    """None where a method does not rematch, nothing was called mismatched, or nobody knows the truth."""
    trainer, data = training.trainer, training.data
    split = training.folder.last_split()
    if split is None or trainer.method.rematcher() is None or data.table.truth is None:
        return None
    ids = np.flatnonzero(split["mismatched"])
    size = training.config.train.batch_size
    if len(ids) < size:
        return None
    known = scene_truth(data)
    belongs = data.table.truth.image_rows

    def true_cells(seen: NDArray[np.int64], batch: NDArray[np.int64]) -> NDArray[np.bool_]:
        images = data.table.image_rows[seen]
        if known is not None:
            return np.asarray(known[np.ix_(images, data.table.text_rows[batch])])
        return np.asarray(images[:, None] == belongs[batch][None, :])

    landed = moved = expected = 0.0
    batches = 0
    for seen, batch, plan in _plans(training, ids, most):
        cells = true_cells(seen, batch)
        allowed = data.table.image_rows[seen][:, None] != data.table.image_rows[batch][None, :]
        landed += float((plan * cells).sum())
        moved += float(plan.sum())
        expected += float(cells[allowed].mean())
        batches += 1
    return RematchingShares(true=min(landed / moved, 1.0), chance=expected / batches, batches=batches)


def ranked_alignments(training: Training, most: int = 20, ranks: int = 64) -> dict[str, list[float]] | None:
    """The refined alignment of an image with its captions, normalised and sorted, on average (L2RM Appendix C.3).

    Apart for transported images (they carry more than half of the mass one can) and for the others. None where a
    method does not rematch.
    """
    split, size = training.folder.last_split(), training.config.train.batch_size
    if split is None or training.trainer.method.rematcher() is None or split["mismatched"].sum() < size:
        return None
    kept: dict[str, list[NDArray[np.float64]]] = {"transported": [], "untransported": []}
    for _, _, plan in _plans(training, np.flatnonzero(split["mismatched"]), most):
        carried = plan.sum(1) > 0.5 * plan.sum(1).max()
        rows = np.maximum(plan, 1e-10)
        rows = -np.sort(-rows / rows.sum(1, keepdims=True), axis=1)[:, :ranks]
        kept["transported"].append(rows[carried])
        kept["untransported"].append(rows[~carried])
    joined = {name: np.concatenate(rows) for name, rows in kept.items()}
    return {name: rows.mean(0).round(6).tolist() if len(rows) else [] for name, rows in joined.items()}


def _plans(
    training: Training, ids: NDArray[np.int64], most: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]]:
    """(pairs whose images are seen, pairs whose captions are, plan) of up to `most` batches of the pairs `ids`."""
    trainer, data = training.trainer, training.data
    rematcher, alone = trainer.method.rematcher(), cast("Run", _Alone(data.table.image_rows))
    assert rematcher is not None
    batches = lockstep({"ids": ids}, training.config.train.batch_size, Streams(0).numpy("rematching"))
    with evaluation_mode(*trainer.method.modules.values()):
        for chosen in islice(batches, most):
            batch = chosen["ids"]
            seen = rematcher.candidates(batch)
            place = trainer.engine.place
            plan = rematcher.rematch(alone, place(data.batch(seen, "images")), place(data.batch(batch, "texts"))).plan
            yield seen, batch, plan.double().cpu().numpy()


@dataclass(frozen=True)
class _Alone:
    """As much of a Run as looking at a plan takes, without other processes: only the first one looks."""

    image_of: NDArray[np.int64]

    def encode_images(self, model: RetrievalModel, batch: PairBatch) -> Encoded:
        return model.encode_images(batch.images, batch.image_mask)

    def encode_texts(self, model: RetrievalModel, batch: PairBatch) -> Encoded:
        return model.encode_texts(batch.texts, batch.text_mask)
