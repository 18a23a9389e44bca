"""How good are the verdicts, where somebody knows the truth?

Letters: N pairs, I images, M texts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mispair.auditing.similarity import Rows
from mispair.auditing.verdict_table import TRUTH
from mispair.auditing.verdicts import Verdicts
from mispair.data.pair_data import PairData, scene_truth
from mispair.errors import InputError
from mispair.functional.detection import detection_metrics

Fits = Callable[[Rows, Rows], NDArray[np.bool_]]  # image rows, text rows -> whether they belong together


def who_belongs(data: PairData) -> Fits:
    """Whether a text belongs to an image: says something true of it (generated scenes), or came with it (elsewhere)."""
    known = scene_truth(data)
    if known is not None:
        return lambda images, texts: known[images, texts]
    return lambda images, texts: data.image_of_text[texts] == images


def with_truth(
    verdicts: Verdicts, mismatched: NDArray[np.bool_], image_rows: Rows, text_rows: Rows, fits: Fits | None
) -> Verdicts:
    """The verdicts with the columns of the truth, and how they compare. `fits` None: nobody knows the partners."""
    if len(mismatched) != len(verdicts):
        raise InputError(f"the truth has {len(mismatched):,} entries for {len(verdicts):,} pairs; give one per pair")
    p = verdicts.p_mismatch
    figures: dict[str, float] = detection_metrics(p, mismatched) | {"rate": float(mismatched.mean())}
    proposal_true = pa.nulls(len(p), pa.bool_())
    if fits is not None:
        partner = verdicts.table["proposed_caption_pair"].fill_null(-1).to_numpy()
        true, exists = _judged(partner, image_rows, text_rows, fits)
        proposal_true = pa.array(true, mask=(partner < 0) | ~exists)
        image_partner = verdicts.table["proposed_image_pair"].fill_null(-1).to_numpy()
        image_true, image_exists = _judged(
            image_partner, text_rows, image_rows, lambda texts, images: fits(images, texts)
        )
        figures |= {
            "proposals": int((partner >= 0).sum()),
            "proposals_true": _share(true, (partner >= 0) & exists & mismatched),
            "image_proposals_true": _share(image_true, (image_partner >= 0) & image_exists & mismatched),
            "rematch_accuracy": _share(true & (partner >= 0), exists & mismatched),
        }
    added = (mismatched, proposal_true)
    table = verdicts.table
    for field, column in zip(TRUTH, added, strict=True):
        table = table.append_column(field, pa.array(column, pa.bool_()) if field.name == "truth_mismatched" else column)
    return Verdicts(table, replace(verdicts.facts, truth={k: v for k, v in figures.items() if v == v}))


def _judged(partner: Rows, own: Rows, other: Rows, fits: Fits) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether each proposal is true, and whether the set holds a true partner at all, both (N,)."""
    asked = np.flatnonzero(partner >= 0)
    true = np.zeros(len(own), bool)
    true[asked] = fits(own[asked], other[partner[asked]])
    distinct = np.unique(other)
    has: dict[int, bool] = {}
    exists = np.empty(len(own), bool)
    for item in np.unique(own).tolist():
        has[item] = bool(fits(np.full(len(distinct), item), distinct).any())
    for pair, item in enumerate(own.tolist()):
        exists[pair] = has[item]
    return true, exists


def _share(true: NDArray[np.bool_], among: NDArray[np.bool_]) -> float:
    return float(true[among].mean()) if among.any() else float("nan")
