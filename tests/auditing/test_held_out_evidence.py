"""What the other pairs say of a cell: texts are found by their rows, whatever the order of the pairs."""

import numpy as np
import torch

from mispair.auditing.held_out_evidence import said_by_others
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
    assert np.array_equal(said_by_others(images, shown, table)(rows, cols, trust)[:, 0], expected)


def test_a_model_that_knew_both_sides_before_is_asked_too():
    rng = np.random.default_rng(0)
    images, joint, texts = torch.randn(11, 4), torch.randn(11, 3) + 2, torch.randn(22, 3)
    table = PairTable(np.repeat(np.arange(11), 2), rng.permutation(22))
    rows, cols = rng.integers(11, size=50), rng.integers(22, size=50)
    shown = texts[torch.from_numpy(table.text_rows)]
    said = said_by_others(images, shown, table, joint)(rows, cols, np.ones(22))
    a, b = joint - joint.mean(0), texts - texts.mean(0)
    expected = -torch.nn.functional.cosine_similarity(a[torch.from_numpy(rows)], b[torch.from_numpy(cols)])
    assert said.shape == (50, 2)
    assert np.allclose(said[:, 1], expected, atol=1e-6)
