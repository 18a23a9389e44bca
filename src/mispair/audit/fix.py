"""What an action makes of the pairs: which stay, and which caption each of them shows.

Letters: N pairs that were judged, n that stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mispair.audit.verdicts import Verdicts
from mispair.errors import InputError

Rows = NDArray[np.int64]

ACTIONS = ("drop", "weight", "rematch", "swap")


@dataclass(frozen=True, eq=False)
class Fix:
    """The pairs that stay, by the row they had."""

    action: str
    kept: Rows  # (n,) pairs
    caption_of: Rows  # (n,) the pair whose caption each of them shows now
    weights: NDArray[np.float64] | None = None  # (n,)

    @property
    def changed(self) -> int:
        """Pairs that show another caption than before."""
        return int((self.kept != self.caption_of).sum())


def plan_fix(verdicts: Verdicts, action: str) -> Fix:
    """drop: without the issues. weight: all, weighted by mismatch_score. rematch: issues show the caption proposed for
    their image and are dropped where nothing was proposed. swap: pairs that mend each other exchange captions.
    """
    every = np.arange(len(verdicts))
    issues = verdicts.is_mismatch_issue
    if action == "drop":
        return Fix(action, every[~issues], every[~issues])
    if action == "weight":
        return Fix(action, every, every, 1 - verdicts.p_mismatch)
    if action == "rematch":
        proposed = _pairs(verdicts, "proposed_caption_pair")
        kept = every[~issues | (proposed >= 0)]
        return Fix(action, kept, np.where(issues & (proposed >= 0), proposed, every)[kept])
    if action == "swap":
        partner = _pairs(verdicts, "swap_with")
        return Fix(action, every, np.where(partner >= 0, partner, every))
    raise InputError(f"there is no action {action!r}; the actions are {', '.join(ACTIONS)}")


def _pairs(verdicts: Verdicts, column: str) -> Rows:
    values: NDArray[Any] = verdicts.table[column].fill_null(-1).to_numpy()
    return values
