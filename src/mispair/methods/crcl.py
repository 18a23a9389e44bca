"""CRCL: refine what is believed of a pair, forget what was learned from it (Qin et al., NeurIPS 2023).

Cross-modal Active Complementary Learning with Self-refining Correspondence.

Every pair has a label in [0, 1], 1 to begin with, kept for the whole run. In every step:
  1. move the labels of the batch towards the probability of its pairs              -> _refine
  2. pull partners as far as their label says, push all negatives                   -> _step
At some epochs the network starts anew while the labels stay, so that what it memorised from wrong pairs is lost; the
labels rest for the first epochs of every such schedule. What was changed, and why, is in PAPERS.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from mispair.device_to_host import to_host
from mispair.functional.contrastive_losses import active_complementary, log_probabilities
from mispair.methods.about import About
from mispair.methods.base import MethodBase, MethodConfig, scores_of, weighed
from mispair.protocols import Run
from mispair.retrieval_module import RetrievalModule
from mispair.types import PairBatch


class CRCLConfig(MethodConfig):
    """As published, but for the schedules, which depend on the length of the run; see PAPERS.md."""

    name: Literal["crcl"] = "crcl"
    restart_at: tuple[int, ...] = (4,)  # epochs at which the network starts anew
    warmup_epochs: int = Field(default=2, ge=1)  # of every schedule, in which labels rest
    temperature: float = Field(default=0.05, gt=0.0)
    negative_weight: float = Field(default=5.0, ge=0.0)
    memory: float = Field(default=0.8, ge=0.0, lt=1.0)  # share of a label that a step keeps
    floor: float = Field(default=0.1, ge=0.0, lt=1.0)  # labels below it become 0


class CRCL(MethodBase[CRCLConfig]):
    """One network at a time, and labels that outlive it."""

    Config = CRCLConfig
    about = About(
        name="crcl",
        paper="Cross-modal Active Complementary Learning with Self-refining Correspondence",
        venue="NeurIPS",
        year=2023,
        url="https://arxiv.org/abs/2310.17468",
        networks=1,
        cost=1.0,
        mismatched="loses its label step by step, until only its negatives are learned from",
    )
    takes_known = True

    def __init__(self, config: CRCLConfig, make_network: Callable[[], RetrievalModule], batch_size: int) -> None:
        super().__init__(config, make_network, batch_size)
        self.labels: Tensor | None = None  # by pair id
        self._known: Tensor | None = None  # what people said of pairs, by pair id
        self._resting = self._believing = False

    def epoch(self, epoch: int, run: Run) -> None:
        labels = torch.ones(run.pairs) if self.labels is None else self.labels
        self.labels = labels.to(self.device)
        self._known = None if run.known is None else torch.from_numpy(run.known).to(self.device)
        if epoch in self.config.restart_at:
            run.restart("net", self.make_network)
        began = max((start for start in self.config.restart_at if start <= epoch), default=0)
        self._resting = epoch - began < self.config.warmup_epochs
        self._believing = epoch == self.config.warmup_epochs - 1 and began == 0
        run.sweep(self._step, batch=None)
        doubt = 1 - to_host(self.labels).double().numpy()
        run.record(signal=doubt, posterior=doubt, mismatched=doubt > 0.5)

    def _step(self, run: Run, batch: PairBatch) -> None:
        config = self.config
        scores = scores_of(self.net, *run.encode(self.net, batch))
        labels = self._refine(scores.detach(), batch.pair_ids)
        losses = active_complementary(scores, labels, config.temperature, config.negative_weight)
        run.log(loss=losses.mean(), label=labels.mean())
        run.minimize("net", weighed(run, losses, batch.pair_ids).mean())

    def _refine(self, scores: Tensor, ids: Tensor) -> Tensor:
        """The labels to train with; what is remembered of them may differ."""
        assert self.labels is not None
        v2t, t2v = log_probabilities(scores, self.config.temperature)
        predicted = (0.5 * (v2t.exp() + t2v.exp())).diagonal()
        labels = self.labels[ids]
        if not self._resting:
            labels = self.config.memory * labels + (1 - self.config.memory) * predicted
        labels = labels.where(labels >= self.config.floor, 0.0)
        remembered = predicted if self._believing else labels
        if self._known is not None:
            known = self._known[ids]
            labels, remembered = (torch.where(known < 0, guess, 1.0 - known) for guess in (labels, remembered))
        self.labels[ids] = remembered
        return labels

    def state(self) -> dict[str, Any]:
        return {} if self.labels is None else {"labels": self.labels.clone()}

    def restore(self, state: dict[str, Any]) -> None:
        self.labels = state["labels"].clone().to(self.device) if "labels" in state else None
