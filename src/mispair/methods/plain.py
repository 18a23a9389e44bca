"""Plain training: every given pair is believed. The four general baselines are this on their backbone.

SGR, SAF and IMRAM are trained with the hardest-negative triplet (VSE++, Faghri et al., BMVC 2018); InfoNCE and its
sum with the reverse cross entropy (L2RM Eq. 3 and 5) are the alternatives.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from mispair.functional.contrast import info_nce, symmetric_cross_entropy
from mispair.functional.ranking import PLATEAU, on_plateau, triplet
from mispair.methods.about import About
from mispair.protocols import Run
from mispair.section import Section
from mispair.types import PairBatch

ABOUT = About(
    name="plain",
    paper="VSE++: Improving Visual-Semantic Embeddings with Hard Negatives",
    venue="BMVC",
    year=2018,
    url="https://arxiv.org/abs/1707.05612",
    networks=1,
    cost=1.0,
    mismatched="is believed like any other",
)


class PlainConfig(Section):
    """`loss` on all pairs; a triplet may start with mean negatives for `warmup_epochs` to leave the plateau."""

    name: Literal["plain"] = "plain"
    loss: Literal["triplet", "infonce", "infonce_rce"] = "triplet"
    margin: float = Field(default=0.2, gt=0.0)
    temperature: float = Field(default=0.05, gt=0.0)
    warmup_epochs: int = Field(default=0, ge=0)


class Plain:
    """One network, one loss."""

    scorers: tuple[str, ...] = ("net",)
    rate_scale: Mapping[str, float] = {}

    def __init__(self, config: PlainConfig, net: nn.Module) -> None:
        self.config = config
        self.net: Any = net
        self.modules: Mapping[str, nn.Module] = {"net": net}
        self._epoch = 0
        self._total, self._steps = torch.zeros(()), 0  # of this epoch's mean losses

    def epoch(self, epoch: int, run: Run) -> None:
        self._epoch = epoch
        self._total, self._steps = torch.zeros(()), 0
        run.sweep(self._step, batch=None)
        hardest = self.config.loss == "triplet" and epoch >= self.config.warmup_epochs
        if hardest and on_plateau(float(self._total) / max(self._steps, 1), self.config.margin):
            run.note(f"{PLATEAU} (--set method.warmup_epochs=3, or method.loss=infonce)")

    def _step(self, run: Run, batch: PairBatch) -> None:
        images, texts = run.encode(self.net, batch)
        hardest = self.config.loss == "triplet" and self._epoch >= self.config.warmup_epochs
        losses = self._losses(self.net.link(self.net.similarity(images, texts, sparse=hardest)).float())
        self._total = self._total.to(losses.device) + losses.detach().mean()
        self._steps += 1
        run.log(loss=losses.mean())
        run.minimize("net", losses.sum() if self.config.loss == "triplet" else losses.mean())

    def _losses(self, scores: Tensor) -> Tensor:
        config = self.config
        if config.loss == "triplet":
            return triplet(scores, config.margin, "mean" if self._epoch < config.warmup_epochs else "hardest")
        if config.loss == "infonce":
            return info_nce(scores, config.temperature)
        return symmetric_cross_entropy(scores, config.temperature)

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        pass
