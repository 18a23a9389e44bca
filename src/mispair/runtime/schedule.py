"""Learning-rate rules as functions of the epoch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

Rule = Literal["step", "cosine", "constant"]


def learning_rate(
    rule: Rule, base: float, epoch: int, epochs: int, decay_at: Sequence[int] = (), factor: float = 0.1
) -> float:
    """The rate of `epoch` (from 0): step multiplies by `factor` at each epoch of `decay_at`; cosine falls to 0."""
    if rule == "cosine":
        return base * 0.5 * (1 + math.cos(math.pi * epoch / max(epochs, 1)))
    if rule == "step":
        return base * factor ** sum(epoch >= at for at in decay_at)
    return base
