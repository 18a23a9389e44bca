"""Evidence about a cell that its own pair had no part in: by all other pairs, and by a model that is not trained."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mispair.auditing.similarity import Rows
from mispair.data.pair_table import PairTable
from mispair.functional.leave_one_out import OtherPairs, centred
from mispair.types import Untrained

Floats = NDArray[np.float64]


def said_by_others(
    images: Tensor, texts: Tensor, table: PairTable, joint: Tensor | None = None
) -> Callable[[Rows, Rows, Floats], Floats]:
    """Of cells (C,) image rows, (C,) text rows, and how far each pair is trusted (N,): the disagreement, (C, 1 or 2).

    Args:
        images, texts: (I, F) by image row; (N, D) by pair, of the text it shows. What the other pairs say of a cell:
            neither its image nor its text had a part in it.
        joint: (I, D) the images in the space of the texts, by a model that no pair had a part in.
    """
    pair_of_text = np.zeros(int(table.text_rows.max()) + 1, np.int64)
    pair_of_text[table.text_rows] = np.arange(len(table))
    near = None if joint is None else (centred(joint), centred(texts))

    def disagreement(rows: Rows, cols: Rows, trust: Floats) -> Floats:
        pairs = pair_of_text[cols]
        said = [OtherPairs(images, texts, table.image_rows, trust).disagreement(rows, pairs)]
        if near is not None:
            cosines = (near[0][torch.from_numpy(rows)] * near[1][torch.from_numpy(pairs)]).sum(1)
            said.append(-cosines.double().numpy())
        return np.column_stack(said)

    return disagreement


def said_without_training(vectors: Untrained | None, table: PairTable) -> Callable[[Rows, Rows, Floats], Floats] | None:
    """`said_by_others` by vectors that nothing was trained for; None where there are none."""
    if vectors is None:
        return None
    joint = None if vectors.joint is None else torch.from_numpy(vectors.joint)
    return said_by_others(torch.from_numpy(vectors.images), torch.from_numpy(vectors.texts), table, joint)
