"""SGR: similarity graph reasoning (Diao et al., AAAI 2021), one of the two halves of SGRAF."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from mispair.models.finegrained import FineGrained, FineGrainedConfig, node_mask
from mispair.models.groups import Group
from mispair.models.masked import xavier
from mispair.models.reasoning import GraphReasoning
from mispair.models.sizes import InputSizes, Size


class SGRConfig(FineGrainedConfig):
    """Sizes and steps; `checkpoint` recomputes the inner graph steps instead of storing them."""

    name: Literal["sgr"] = "sgr"
    steps: PositiveInt = 3
    checkpoint: bool = False

    @classmethod
    def preset(cls, size: Size) -> SGRConfig:
        return {"paper": cls(), "small": cls(embed=256, sim=64)}[size]


class GraphStep(nn.Module):
    """Weights of one step. The key map has no bias: it would shift whole rows of a softmax and change nothing."""

    def __init__(self, sim: int) -> None:
        super().__init__()
        self.query = xavier(sim, sim)
        self.key = xavier(sim, sim, bias=False)
        self.graph = xavier(sim, sim)

    def merged(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """M = W_q' W_k, b_q W_k, W_g, b_g as `reasoning` wants them."""
        return (
            self.query.weight.T @ self.key.weight,
            self.query.bias @ self.key.weight,
            self.graph.weight,
            self.graph.bias,
        )


class SGR(FineGrained):
    """Raw logits w_e · x_0 + b_e of the global node after the last step; the published score is their sigmoid."""

    def __init__(self, config: SGRConfig, sizes: InputSizes) -> None:
        super().__init__(config, sizes)
        self.checkpoint = config.checkpoint
        self.steps = nn.ModuleList(GraphStep(config.sim) for _ in range(config.steps))
        self.out = xavier(config.sim, 1)

    def _score(self, groups: Iterator[tuple[Tensor | None, Tensor]], plan: list[Group] | None = None) -> list[Tensor]:
        weights: list[Tensor] | None = None
        logits = []
        for mask, nodes in groups:
            if weights is None:
                weights = [w.to(nodes.dtype) for w in self._weights()]
            logits.append(self._reason(nodes, None if mask is None else node_mask(mask), weights))
        return logits

    def _weights(self) -> list[Tensor]:
        merged = [weight for step in self.steps for weight in step.merged()]  # type: ignore[operator]
        return [*merged, self.out.weight[0], self.out.bias[0]]

    def _reason(self, nodes: Tensor, mask: Tensor | None, weights: list[Tensor]) -> Tensor:
        keep = torch.is_grad_enabled() and not self.checkpoint
        logits: Tensor = GraphReasoning.apply(nodes, mask, keep, *weights)  # type: ignore[no-untyped-call]
        return logits.to(self.out.weight.dtype)
