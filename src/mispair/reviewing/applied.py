"""An audit after a review: what people said stands above any probability, and their labels mend the other ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mispair.auditing.verdicts import Verdicts
from mispair.counted import counted, either
from mispair.reviewing.agreement import majority
from mispair.reviewing.decisions import Decision, latest_by_pair
from mispair.reviewing.recalibration import Recalibration, recalibrate

_PROPOSALS = tuple(
    f"proposed_{what}{part}" for what in ("caption", "image") for part in ("", "_id", "_pair", "_weight", "_gain")
)


@dataclass(frozen=True)
class Applied:
    """Verdicts as decided, and the captions that people wrote or took."""

    verdicts: Verdicts
    captions: dict[int, str]  # by pair: what it shows from now on
    decided: int  # pairs with a decision
    recalibration: Recalibration
    others: NDArray[np.int64]  # pairs without one

    def others_sentence(self, before: Verdicts, threshold: float) -> str:
        """What the labels did to pairs nobody looked at; nothing where they moved no probability."""
        if self.recalibration.kind == "none" or not len(self.others):
            return ""
        then, now = (int((v.p_mismatch[self.others] > threshold).sum()) for v in (before, self.verdicts))
        return (
            f"The probabilities of {counted(len(self.others), 'other')} were fitted to what reviewers said of pairs"
            f" like them: {now:,} {either(now, 'is', 'are')} above {threshold:g}, before {then:,}."
        )


def apply_decisions(verdicts: Verdicts, decisions: Sequence[Decision]) -> Applied:
    """Pairs people called wrong have probability 1 and no proposal, those they called right or mended have 0.

    Where reviewers differ, most of them count; a caption counts as the last one written for the pair. Probabilities of
    the other pairs are mapped monotonely to what people said of pairs like them, where there are labels enough.
    """
    said = majority(decisions)
    latest = latest_by_pair(decisions)
    captions = {
        pair: d.caption for pair, d in latest.items() if said[pair] and d.caption is not None
    }  # one that most call right stays as it is
    pairs = np.array(sorted(said), np.int64)
    wrong = np.array([said[pair] for pair in pairs.tolist()], bool)
    p = verdicts.p_mismatch
    mapped = recalibrate(p[pairs], wrong)
    after = mapped(p).copy()
    after[pairs] = wrong & ~np.isin(pairs, list(captions))
    table = verdicts.table
    table = _set(table, "p_mismatch", pa.array(after))
    table = _set(table, "mismatch_score", pa.array(1 - after))
    table = _set(table, "is_mismatch_issue", pa.array(after > 0.5))
    kept = np.ones(len(verdicts), bool)
    kept[pairs] = False  # whoever looked at a pair has taken its proposal or not
    for name in (*_PROPOSALS, "swap_with"):
        if name in table.column_names:
            values = table[name].combine_chunks()
            table = _set(table, name, pc.if_else(pa.array(kept), values, pa.scalar(None, values.type)))
    return Applied(replace(verdicts, table=table), captions, len(pairs), mapped, np.flatnonzero(kept))


def _set(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    place = table.schema.get_field_index(name)
    return table.set_column(place, table.schema.field(place), values.cast(table.schema.field(place).type))
