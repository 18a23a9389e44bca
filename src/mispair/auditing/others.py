"""What all other pairs say about a cell: evidence that neither its image nor its text had a part in."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from mispair.auditing.similarity import Rows
from mispair.data.pair_table import PairTable
from mispair.functional.leave_one_out import OtherPairs

Floats = NDArray[np.float64]


def said_by_others(images: Tensor, texts: Tensor, table: PairTable) -> Callable[[Rows, Rows, Floats], Floats]:
    """Of cells (C,) image rows, (C,) text rows, and how far each pair is trusted (N,): the disagreement, (C,).

    images (I, F) by image row; texts (N, D) by pair, of the text it shows.
    """
    pair_of_text = np.zeros(int(table.text_rows.max()) + 1, np.int64)
    pair_of_text[table.text_rows] = np.arange(len(table))

    def disagreement(rows: Rows, cols: Rows, trust: Floats) -> Floats:
        return OtherPairs(images, texts, table.image_rows, trust).disagreement(rows, pair_of_text[cols])

    return disagreement
