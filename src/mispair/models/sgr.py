"""SGR: similarity graph reasoning (Diao et al., AAAI 2021), one of the two halves of SGRAF.

The slow version that proves it: `scores` with `sgr_head` in tests/model_oracles.py, one pair at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Literal

import torch
from pydantic import NonNegativeInt, PositiveInt, model_validator
from torch import Tensor, nn

from mispair.distributed import SharedColumns
from mispair.models.finegrained import FineGrained, FineGrainedConfig, Nodes, PreparedBatch, node_mask
from mispair.models.kernels.autograd import differentiable
from mispair.models.kernels.caption_groups import Group
from mispair.models.kernels.reasoning import GraphReasoning
from mispair.models.kernels.recompute import score
from mispair.models.kernels.similarity_vectors import SimilarityVectors, block_rows
from mispair.models.layers import xavier
from mispair.models.sizes import InputSizes


class SGRConfig(FineGrainedConfig):
    """Sizes and steps; `checkpoint` recomputes the inner graph steps instead of storing them.

    `shortlist`: while training, score only so many candidates of each image and each text of a batch, those the
    stand-in ranks highest; the others are estimated. None: every cell. `shortlist_after`: epochs before that, in which
    the mean region is compared with the mean word and nothing else, until the stand-in knows whom to name.
    """

    name: Literal["sgr"] = "sgr"
    steps: PositiveInt = 3
    checkpoint: bool = False
    shortlist: PositiveInt | None = None
    shortlist_after: NonNegativeInt = 2

    @model_validator(mode="after")
    def _somebody_chooses(self) -> SGRConfig:
        if self.shortlist and not self.stand_in:
            raise ValueError("model.shortlist is chosen by the stand-in: it cannot go without model.stand_in")
        return self


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

    Config = SGRConfig
    presets: ClassVar = {"paper": SGRConfig, "small": lambda: SGRConfig(embed=256, sim=64)}

    def __init__(self, config: SGRConfig, sizes: InputSizes) -> None:
        super().__init__(config, sizes)
        self.checkpoint = config.checkpoint
        self._shortlist, self._shortlist_after = config.shortlist, config.shortlist_after
        self.steps = nn.ModuleList(GraphStep(config.sim) for _ in range(config.steps))
        self.out = xavier(config.sim, 1)

    def _score(
        self, groups: Nodes, plan: list[Group] | None = None, shared: SharedColumns | None = None
    ) -> list[Tensor]:
        weights: list[Tensor] | None = None
        logits = []
        for mask, nodes in groups:
            if weights is None:
                weights = [w.to(nodes.dtype) for w in self._weights()]
            logits.append(self._reason(nodes, None if mask is None else node_mask(mask), weights))
        return logits

    def _score_again(self, pairs: PreparedBatch, words: Tensor, text_global: Tensor) -> Tensor:
        images = [pairs.regions, pairs.gram, pairs.image_global]
        if pairs.region_mask is not None:
            images.append(pairs.region_mask)
        weights = [*pairs.maps, *(w.to(words.dtype) for w in self._weights())]
        step = max(1, block_rows(words.device, self.embed) // (words.shape[0] * words.shape[1]))
        logits = score(partial(_block, pairs.smooth), images, [words[None], text_global[None]], weights, step)
        return logits.to(self.out.weight.dtype)

    def _weights(self) -> list[Tensor]:
        steps = (step for step in self.steps if isinstance(step, GraphStep))  # all of them are
        merged = [weight for step in steps for weight in step.merged()]
        return [*merged, self.out.weight[0], self.out.bias[0]]

    def _reason(self, nodes: Tensor, mask: Tensor | None, weights: list[Tensor]) -> Tensor:
        keep = torch.is_grad_enabled() and not self.checkpoint
        logits = differentiable(GraphReasoning, nodes, mask, keep, *weights)
        return logits.to(self.out.weight.dtype)


def _block(smooth: float, images: Sequence[Tensor], texts: Sequence[Tensor], weights: Sequence[Tensor]) -> Tensor:
    """Logits of a block from what `SimilarityVectors` and `GraphReasoning` read."""
    regions, gram, image_global, *mask = images
    seen = (regions, gram, texts[0], image_global, texts[1], mask[0] if mask else None)
    nodes = differentiable(SimilarityVectors, *seen, *weights[:4], smooth)
    return differentiable(GraphReasoning, nodes, None, True, *weights[4:])
