"""The rows of an audit, made of what was judged: the one place that fills the columns of `verdict_table.SCHEMA`.

Letters: N pairs in all, n of them made into rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mispair.auditing.proposals import Proposals
from mispair.auditing.similarity import Rows
from mispair.auditing.verdict_table import SCHEMA

Floats = NDArray[np.float64]
TextsOf = Callable[[Rows], pa.Array]  # pairs (n,) -> n texts


@dataclass(frozen=True)
class PairTexts:
    """What people know pairs by: the id of a pair, the id of its image, its caption."""

    pair_ids: TextsOf
    image_ids: TextsOf
    captions: TextsOf


def verdict_rows(
    pairs: Rows,
    shown: PairTexts,
    p: Floats,
    score: NDArray[np.floating],
    caption_rank: Rows,
    image_rank: Rows,
    proposals: Proposals,
    look: Rows,
) -> pa.Table:
    """The rows of `pairs` (n,): score and ranks are theirs (n,); p, proposals and look are those of all pairs (N,)."""
    p = p[pairs]
    caption, image, swap = proposals.caption_pair[pairs], proposals.image_pair[pairs], proposals.swap_with[pairs]
    columns = {
        "pair": pairs,
        "pair_id": shown.pair_ids(pairs),
        "image_id": shown.image_ids(pairs),
        "caption": shown.captions(pairs),
        "p_mismatch": p,
        "mismatch_score": 1 - p,
        "is_mismatch_issue": p > 0.5,
        "score": score.astype(np.float64),
        "caption_rank": caption_rank,
        "image_rank": image_rank,
        "proposed_caption": _texts_where(shown.captions, caption),
        "proposed_caption_pair": pa.array(caption, mask=caption < 0),
        "proposed_caption_weight": pa.array(proposals.caption_weight[pairs], mask=caption < 0),
        "proposed_caption_gain": pa.array(proposals.caption_gain[pairs], mask=caption < 0),
        "proposed_image_id": _texts_where(shown.image_ids, image),
        "proposed_image_pair": pa.array(image, mask=image < 0),
        "proposed_image_weight": pa.array(proposals.image_weight[pairs], mask=image < 0),
        "proposed_image_gain": pa.array(proposals.image_gain[pairs], mask=image < 0),
        "swap_with": pa.array(swap, mask=swap < 0),
        "look": look[pairs],
    }
    return pa.table(columns, schema=SCHEMA)


def look_order(p: Floats) -> Rows:
    """Order of what is most worth a person's look, (N,) from 1: where the decision at 1/2 is most likely mistaken."""
    place = np.empty(len(p), np.int64)
    place[np.argsort(-np.minimum(p, 1 - p), kind="stable")] = np.arange(1, len(p) + 1)
    return place


def _texts_where(texts: TextsOf, pairs: Rows) -> pa.Array:
    """The texts of these pairs; none where the pair is -1."""
    return pc.if_else(pa.array(pairs >= 0), texts(pairs.clip(min=0)), pa.scalar(None, pa.string()))
