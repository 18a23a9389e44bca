"""How good are rematches, where the truth is known: the share of transported mass that lands on true partners."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mispair.config.assemble import Assembly
from mispair.config.finish import last_split
from mispair.data import scene_truth
from mispair.data.streams import lockstep
from mispair.methods.l2rm import L2RM
from mispair.runtime.randomness import Streams


@dataclass(frozen=True)
class Rematching:
    """Shares of the transported mass, over the pairs the last epoch called mismatched."""

    true: float  # lands on a caption that is true of its image
    chance: float  # would, if the plan were uniform over the allowed cells
    batches: int


def judge_rematching(assembly: Assembly, most: int = 40) -> Rematching | None:
    """None where a method does not rematch, nothing was called mismatched, or nobody knows the truth."""
    trainer, data = assembly.trainer, assembly.train
    split, method = last_split(assembly.folder), trainer.method
    if split is None or not isinstance(method, L2RM) or data.table.truth is None:
        return None
    ids = np.flatnonzero(split["mismatched"])
    size = assembly.config.train.batch_size
    if len(ids) < size:
        return None
    known = scene_truth(data)
    belongs = data.table.truth.image_rows

    def true_cells(batch: NDArray[np.int64]) -> NDArray[np.bool_]:
        images = data.table.image_rows[batch]
        if known is not None:
            return np.asarray(known[np.ix_(images, data.table.text_rows[batch])])
        return np.asarray(images[:, None] == belongs[batch][None, :])

    landed = moved = expected = 0.0
    batches = 0
    for module in method.modules.values():
        module.eval()
    for chosen in lockstep({"ids": ids}, size, Streams(0).numpy("rematching")):
        batch = chosen["ids"]
        plan = method.rematch(trainer, trainer.engine.place(data.batch(batch))).plan.cpu().numpy()
        cells = true_cells(batch)
        landed += float((plan * cells).sum())
        moved += float(plan.sum())
        expected += float(cells[~np.eye(size, dtype=bool)].mean())
        batches += 1
        if batches == most:
            break
    return Rematching(landed / moved, expected / batches, batches)
