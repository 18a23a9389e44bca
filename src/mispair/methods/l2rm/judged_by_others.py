"""The split by what all other pairs say of a pair, asked once, before the first step."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mispair.functional.judged_by_others import judge_by_others
from mispair.functional.loss_split import trust_at_least, with_known
from mispair.protocols import Run
from mispair.types import Split

_COLUMNS = ("suspicion", "repaired", "p_mismatch")
_SAID = (*_COLUMNS, "interval")


class OthersSplit:
    """Pairs judged by vectors that nothing was trained for: no training, however long, can change the answer."""

    def __init__(self, matched_below: float, at_least: int) -> None:
        self.matched_below, self.at_least = matched_below, at_least
        # (N,) each, and the ends of the rate's interval; None: not asked, or nobody could say
        self.said: dict[str, NDArray[np.float64]] | None = None

    def ask(self, run: Run) -> None:
        """Judge all pairs; without vectors of both sides nobody can, and a note says so."""
        untrained = run.untrained()
        if untrained is None:
            run.note("a network of your own reads pictures, so no vectors are there to judge by before training")
            return
        weight = None if run.known is None else np.where(run.known == 1, 0.0, 1.0)
        judged = judge_by_others(untrained.images, untrained.texts, run.image_of, weight, untrained.joint)
        self.said = {name: getattr(judged, name) for name in _COLUMNS}
        self.said["interval"] = np.array([judged.estimate.low, judged.estimate.high])

    def divide(self, run: Run) -> Split:
        """The split, with what people said above it."""
        assert self.said is not None, "ask comes first"
        p = self.said["p_mismatch"]
        split = Split(p, trust_at_least(p > self.matched_below, self.said["suspicion"], self.at_least))
        return with_known(split, run.known, self.at_least)

    def columns(self) -> dict[str, NDArray[np.float64]]:
        """What the split was made of, by pair: larger is more suspicious."""
        assert self.said is not None, "ask comes first"
        suspicion = self.said["suspicion"]
        return {"signal": suspicion, "repaired": self.said["repaired"][: len(suspicion)]}

    def state(self) -> dict[str, Tensor]:
        return {} if self.said is None else {name: torch.from_numpy(said.copy()) for name, said in self.said.items()}

    def restore(self, state: dict[str, Tensor]) -> None:
        self.said = {name: state[name].numpy() for name in _SAID} if state else None
