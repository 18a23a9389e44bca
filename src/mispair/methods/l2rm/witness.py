"""The network as it was before the first step, as a witness: what it thinks of a pair it cannot have learned from it.

Its score of a pair is compared with those of the same image with other texts and of the same text with other images,
and pairs mismatched on purpose (the neighbours of the batch) show how scores of other images look. In later epochs the
running mean of the network's steps (the teacher) is asked the same way, and of the two the smaller trust counts: what
was learned by heart can lower trust, never raise it. (OSA asks a frozen model alone, and there the best pair of a batch
has weight 0.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mispair.functional.known_null import posterior_mismatched

GIVEN, OTHER = "unlike", "unlike_other"  # columns of a survey
TEACHER = 0.99  # decay of the running mean that is asked in later epochs, unless the run keeps one (train.average)


def standing(scores: Tensor) -> dict[str, Tensor]:
    """By pair of a batch, how far its score lies below those of its image and its text with others; (B, B) -> (B,).

    `OTHER`: the same of the image with the text of the next pair.
    """
    centred = scores - scores.mean(1, keepdim=True) - scores.mean(0, keepdim=True) + scores.mean()
    unlike = -centred / centred.std().clamp(min=1e-6)
    return {GIVEN: unlike.diagonal(), OTHER: unlike.roll(-1, 1).diagonal()}


class Witness:
    """What the untrained network said of every pair, (N,) probability of being mismatched."""

    def __init__(self) -> None:
        self.said: NDArray[np.float64] | None = None

    def judge(self, columns: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        """The probability that each pair is mismatched, (N,), by a survey; the first answer bounds all others."""
        now = posterior_mismatched(columns[GIVEN].astype(np.float64), columns[OTHER].astype(np.float64))
        if self.said is None:
            self.said = now
        return np.maximum(now, self.said)

    def state(self) -> dict[str, Tensor]:
        return {} if self.said is None else {"said": torch.from_numpy(self.said.copy())}

    def restore(self, state: dict[str, Tensor]) -> None:
        self.said = state["said"].numpy().copy() if "said" in state else None
