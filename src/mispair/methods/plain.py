"""Plain training: every given pair is believed. The four general baselines are this on their backbone.

SGR, SAF and IMRAM are trained with the hardest-negative triplet (VSE++, Faghri et al., BMVC 2018); InfoNCE and its
sum with the reverse cross entropy (L2RM Eq. 3 and 5) are the alternatives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from mispair.device_to_host import to_host
from mispair.functional.pair_losses import PairLoss, pair_loss
from mispair.functional.ranking_losses import PLATEAU, on_plateau, triplet
from mispair.methods.about import About
from mispair.methods.base import MethodBase, MethodConfig, scores_of, weighed
from mispair.protocols import Run
from mispair.retrieval_module import RetrievalModule
from mispair.types import PairBatch


class PlainConfig(MethodConfig):
    """`loss` on all pairs; a triplet may start with mean negatives for `warmup_epochs` to leave the plateau."""

    name: Literal["plain"] = "plain"
    loss: PairLoss = "triplet"
    margin: float = Field(default=0.2, gt=0.0)
    temperature: float = Field(default=0.05, gt=0.0)
    warmup_epochs: int = Field(default=0, ge=0)


class Plain(MethodBase[PlainConfig]):
    """One network, one loss."""

    Config = PlainConfig
    about = About(
        name="plain",
        paper="VSE++: Improving Visual-Semantic Embeddings with Hard Negatives",
        venue="BMVC",
        year=2018,
        url="https://arxiv.org/abs/1707.05612",
        networks=1,
        cost=1.0,
        mismatched="is believed like any other",
    )

    def __init__(self, config: PlainConfig, make_network: Callable[[], RetrievalModule], batch_size: int) -> None:
        super().__init__(config, make_network, batch_size)
        self._epoch = 0
        self._total, self._steps = torch.zeros(()), 0  # of this epoch's mean losses

    def epoch(self, epoch: int, run: Run) -> None:
        self._epoch = epoch
        self._total, self._steps = torch.zeros(()), 0
        run.sweep(self._step, batch=None)
        hardest = self.config.loss == "triplet" and epoch >= self.config.warmup_epochs
        if hardest and on_plateau(float(to_host(self._total)) / max(self._steps, 1), self.config.margin):
            run.note(f"{PLATEAU} (--set method.warmup_epochs=3, or method.loss=infonce)")

    def _step(self, run: Run, batch: PairBatch) -> None:
        images, texts = run.encode(self.net, batch)
        hardest = self.config.loss == "triplet" and self._epoch >= self.config.warmup_epochs
        losses = self._losses(scores_of(self.net, images, texts, sparse=hardest))
        self._total = self._total.to(losses.device) + losses.detach().mean()
        self._steps += 1
        run.log(loss=losses.mean())
        losses = weighed(run, losses, batch.pair_ids)
        run.minimize("net", losses.sum() if self.config.loss == "triplet" else losses.mean())

    def _losses(self, scores: Tensor) -> Tensor:
        config = self.config
        if config.loss == "triplet" and self._epoch < config.warmup_epochs:
            return triplet(scores, config.margin, "mean")
        return pair_loss(scores, config.loss, config.margin, config.temperature)
