"""The running mean of a network's parameters over its steps: judged and kept, while training goes on from the last.

The mean of many steps has learned less by heart than the last of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


class WeightAverage:
    """Exponential mean with `decay`, shorter at the beginning so that the first steps are soon forgotten."""

    def __init__(self, module: nn.Module, decay: float) -> None:
        self.decay, self.steps = decay, 0
        self.learned: list[Tensor] = [parameter for parameter in module.parameters() if parameter.requires_grad]
        self.mean = [parameter.detach().clone() for parameter in self.learned]

    @torch.no_grad()
    def update(self) -> None:
        """Take the parameters into the mean; called after every step of the optimizer."""
        self.steps += 1
        decay = min(self.decay, (1 + self.steps) / (10 + self.steps))
        torch._foreach_lerp_(self.mean, self.learned, 1 - decay)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The module has the mean for its parameters while this lasts."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for parameter, mean in zip(self.learned, self.mean, strict=True):
            kept = parameter.clone()
            parameter.copy_(mean)
            mean.copy_(kept)

    def state(self) -> dict[str, Any]:
        return {"steps": self.steps, "mean": [tensor.clone() for tensor in self.mean]}

    def restore(self, state: dict[str, Any]) -> None:
        self.steps = state["steps"]
        saved: list[Tensor] = state["mean"]
        for mean, tensor in zip(self.mean, saved, strict=True):
            mean.copy_(tensor)
