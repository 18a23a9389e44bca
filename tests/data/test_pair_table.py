"""Pairs that are shown otherwise, and what is remembered of it."""

import numpy as np
import pytest

from mispair.data.pair_table import PairTable


@pytest.fixture
def table():
    return PairTable(np.array([0, 0, 1, 2]), np.array([0, 1, 2, 3]))


def test_what_was_shown_becomes_the_truth(table):
    shown = table.showing(np.array([0, 1, 1, 2]), np.array([0, 1, 2, 3]))
    assert shown.truth.image_rows.tolist() == [0, 0, 1, 2]
    assert shown.truth.mismatched.tolist() == [False, True, False, False]
    again = shown.showing(np.array([2, 1]), np.array([3, 1]))  # some of them, moved once more: the first truth stays
    assert again.truth.image_rows.tolist() == [2, 0]
    assert again.truth.mismatched.tolist() == [False, True]
    assert again.pair_ids.tolist() == [0, 1]


def test_a_text_that_nobody_knew_belongs_to_no_image(table):
    shown = table.showing(np.array([1]), np.array([9]))
    assert shown.truth.image_rows.tolist() == [-1]
    assert shown.truth.mismatched.tolist() == [True]


def test_the_matched_alone_keep_what_was_said_of_them(table):
    weighted = PairTable(
        table.image_rows, table.text_rows, weights=np.array([0.1, 0.2, 0.3, 0.4]), known=np.array([1, -1, 0, -1])
    )
    kept = weighted.showing(np.array([0, 1, 1, 2]), table.text_rows).truly_matched()
    assert kept.text_rows.tolist() == [0, 2, 3]
    assert kept.weights.tolist() == [0.1, 0.3, 0.4]
    assert kept.known.tolist() == [1, 0, -1]
    assert not kept.truth.mismatched.any()
    alone = kept.without_truth(np.array([2, 0]))
    assert alone.truth is None
    assert alone.text_rows.tolist() == [3, 0]
