"""RCL: learn from what does not belong together (Hu et al., TPAMI 2023).

Cross-Modal Retrieval with Partially Mismatched Pairs.

A mismatched pair lies about its partner, but hardly about the others: a picture and a caption drawn at random rarely
match. So only negatives enter the loss, and the given partner is pulled up through the softmax they share.
  1. draw the negatives of each anchor, all of them by default                      -> _negatives
  2. one step on the complementary contrastive loss of both directions              -> _step
There is no warm-up, no split and no state. The variants of the loss are values of `RCLConfig.loss`.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from mispair.functional.contrastive_losses import complementary, info_nce
from mispair.methods.about import About
from mispair.methods.base import MethodBase, MethodConfig, scores_of, weighed
from mispair.protocols import Run
from mispair.types import PairBatch


class RCLConfig(MethodConfig):
    """As published; see PAPERS.md."""

    name: Literal["rcl"] = "rcl"
    loss: Literal["log", "tan", "abs", "exp", "gce", "infonce"] = "log"
    temperature: float = Field(default=0.05, gt=0.0)
    ratio: float = Field(default=1.0, gt=0.0, le=1.0)  # share of a batch drawn as negatives of each anchor; 1 is all
    q: float = Field(default=0.5, gt=0.0, le=1.0)  # of gce


class RCL(MethodBase[RCLConfig]):
    """One network, one loss of negatives."""

    Config = RCLConfig
    about = About(
        name="rcl",
        paper="Cross-Modal Retrieval with Partially Mismatched Pairs",
        venue="TPAMI",
        year=2023,
        url="https://doi.org/10.1109/TPAMI.2023.3247939",
        networks=1,
        cost=1.0,
        mismatched="is never told apart: only the negatives of every pair are learned from",
    )

    def epoch(self, epoch: int, run: Run) -> None:
        run.sweep(self._step, batch=None)

    def _step(self, run: Run, batch: PairBatch) -> None:
        scores = scores_of(self.net, *run.encode(self.net, batch))
        config = self.config
        if config.loss == "infonce":
            losses = info_nce(scores, config.temperature)
        else:
            losses = complementary(scores, config.temperature, config.loss, self._negatives(run, scores), config.q)
        run.log(loss=losses.mean())
        run.minimize("net", weighed(run, losses, batch.pair_ids).mean())

    def _negatives(self, run: Run, scores: Tensor) -> Tensor | None:
        """⌊ratio · n⌋ others for each image, at least one; those of its caption have the same places, as published."""
        n = len(scores)
        if self.config.ratio == 1:
            return None
        count = min(max(1, math.floor(self.config.ratio * n)), n - 1)
        order = torch.rand(n, n, generator=run.rng).fill_diagonal_(2.0)  # the given partner comes last
        chosen = order.argsort(1)[:, :count]
        return torch.zeros(n, n, dtype=torch.bool).scatter_(1, chosen, True).to(scores.device)
