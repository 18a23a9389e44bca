"""What an action makes of the pairs: which stay, and which caption each of them shows.

Letters: N pairs that were judged, n that stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mispair.auditing.damage import says_nothing
from mispair.auditing.facts import EMPTY_CAPTIONS
from mispair.auditing.verdicts import Verdicts
from mispair.errors import InputError

Rows = NDArray[np.int64]

ACTIONS = ("drop", "weight", "rematch", "swap")
CHOOSING = ("drop", "rematch", "swap")  # pairs or captions by how they look; weighting leaves every pair as it is
PROPOSING = ("rematch", "swap")  # show captions that were proposed


@dataclass(frozen=True, eq=False)
class Fix:
    """The pairs that stay, by the row they had."""

    action: str
    kept: Rows  # (n,) pairs
    caption_of: Rows  # (n,) the pair whose caption each of them shows now
    weights: NDArray[np.float64] | None = None  # (n,)
    captions: Mapping[int, str] = field(default_factory=dict)  # by pair: a caption that a person gave it

    @property
    def changed(self) -> int:
        """Pairs that show another caption than before."""
        given = np.isin(self.kept, np.fromiter(self.captions, np.int64, len(self.captions)))
        return int(((self.kept != self.caption_of) | given).sum())


def plan_fix(
    verdicts: Verdicts, action: str, *, threshold: float = 0.5, min_weight: float = 0.0, min_gain: float = 0.0
) -> Fix:
    """Which pairs stay and what they show.

    drop: without the mismatched pairs and those whose caption says nothing. weight: all, weighted by mismatch_score.
    rematch: these pairs show the caption proposed for their image and are dropped where none is. swap: pairs that mend
    each other exchange captions.

    Args:
        threshold: p_mismatch above which a pair counts as mismatched.
        min_weight, min_gain: of a proposal, below which it counts as none.

    Raises InputError for an unknown action and for values out of range.
    """
    if not 0.0 <= threshold <= 1.0 or not 0.0 <= min_weight <= 1.0:
        raise InputError(f"threshold and min-weight lie between 0 and 1, got {threshold:g} and {min_weight:g}")
    every = np.arange(len(verdicts))
    wrong = verdicts.p_mismatch > threshold
    if action in ("drop", "rematch"):
        wrong |= _say_nothing(verdicts)
    proposed = _pairs(verdicts, "proposed_caption_pair")
    light = verdicts.column("proposed_caption_weight") < min_weight
    small = verdicts.column("proposed_caption_gain") < min_gain
    proposed = np.where(light | small, -1, proposed)
    if action == "drop":
        return Fix(action, every[~wrong], every[~wrong])
    if action == "weight":
        return Fix(action, every, every, 1 - verdicts.p_mismatch)
    if action == "rematch":
        kept = every[~wrong | (proposed >= 0)]
        return Fix(action, kept, np.where(wrong & (proposed >= 0), proposed, every)[kept])
    if action == "swap":
        partner = _pairs(verdicts, "swap_with")
        both = wrong & (proposed >= 0)
        exchanged = (partner >= 0) & (both | both[partner])  # one of the two was proposed, and the way back fits
        return Fix(action, every, np.where(exchanged, partner, every))
    raise InputError(f"there is no action {action!r}; the actions are {', '.join(ACTIONS)}")


def _say_nothing(verdicts: Verdicts) -> NDArray[np.bool_]:
    """(N,) pairs whose caption the audit found empty or generic; one a person called right has p = 0 and is right."""
    if not any(damage.kind == EMPTY_CAPTIONS for damage in verdicts.facts.damage):
        return np.zeros(len(verdicts), bool)
    empty = [says_nothing(caption) for caption in verdicts.table["caption"].to_pylist()]
    return np.array(empty, bool) & (verdicts.p_mismatch > 0)


def _pairs(verdicts: Verdicts, column: str) -> Rows:
    values: NDArray[Any] = verdicts.table[column].fill_null(-1).to_numpy()
    return values
