"""What the other pairs say of a cell: texts are found by their rows, whatever the order of the pairs."""

import numpy as np
import torch

from mispair.auditing.others import said_by_others
from mispair.data.pair_table import PairTable
from mispair.functional.leave_one_out import OtherPairs


def test_a_text_is_known_by_its_row():
    rng = np.random.default_rng(0)
    images, texts = torch.randn(11, 4), torch.randn(22, 3)  # by image, by text
    table = PairTable(rng.permutation(np.repeat(np.arange(11), 2)), rng.permutation(22))
    trust = rng.uniform(0.2, 1, 22)
    shown = texts[torch.from_numpy(table.text_rows)]
    rows, cols = rng.integers(11, size=50), rng.integers(22, size=50)
    pairs = np.array([np.flatnonzero(table.text_rows == col)[0] for col in cols])
    expected = OtherPairs(images, shown, table.image_rows, trust).disagreement(rows, pairs)
    assert np.array_equal(said_by_others(images, shown, table)(rows, cols, trust), expected)
