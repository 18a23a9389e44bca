"""Verdicts beside the truth, counted by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import mispair
from mispair.auditing.truth import with_truth
from mispair.auditing.verdicts import Verdicts
from tests.auditing.planted import planted

PAIRS = 31


@pytest.fixture(scope="module")
def verdicts() -> Verdicts:
    """Pairs 0 to 5 are mismatched: the images show each other's captions in a ring; what is proposed is set by hand."""
    a, b, *_ = planted(pairs=PAIRS, rate=0.0)
    found = mispair.quick_audit(a, b)
    proposed = {0: 1, 1: 3, 4: 0, 5: 0, 9: 2}  # pairs 0, 5: true; 1: false; 4: of a lost one; 9 is matched
    caption = pa.array([proposed.get(k) for k in range(PAIRS)], pa.int64())
    image = pa.array([{0: 5, 1: 0, 2: 4}.get(k) for k in range(PAIRS)], pa.int64())
    table = found.table
    for name, column in (("proposed_caption_pair", caption), ("proposed_image_pair", image)):
        table = table.set_column(table.schema.get_field_index(name), table.schema.field(name), column)
    return replace(found, table=table)


def fits(images: np.ndarray, texts: np.ndarray) -> np.ndarray:
    """Image k belongs to the text of pair k + 1 among the first six, but that of image 4 is lost; else to its own."""
    own = np.where(images < 6, (images + 1) % 6, images)
    return (texts == own) & (images != 4)


def test_counted_by_hand(verdicts: Verdicts) -> None:
    rows = np.arange(PAIRS)
    judged = with_truth(verdicts, rows < 6, rows, rows, fits)
    truth = judged.facts.truth
    assert truth["rate"] == pytest.approx(6 / PAIRS)
    assert truth["proposals"] == 5
    # Of the mismatched whose caption is in the set (not 4), three have a proposal and those of 0 and 5 are true.
    assert truth["proposals_true"] == pytest.approx(2 / 3)
    assert truth["rematch_accuracy"] == pytest.approx(2 / 5)
    # Captions 0, 1 and 2 are proposed the images of 5 (true: 5 + 1 is 0), of 0 (true) and of 4 (false).
    assert truth["image_proposals_true"] == pytest.approx(2 / 3)
    column = judged.table["proposal_true"].to_pylist()
    assert [column[k] for k in (0, 1, 4, 9, 10)] == [True, False, None, False, None]
    assert judged.table["truth_mismatched"].to_pylist() == [k < 6 for k in range(PAIRS)]
    assert "5 with a caption in the set that scores better" in repr(verdicts)
