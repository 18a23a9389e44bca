"""DECL: deep evidential cross-modal learning (Qin et al., ACM MM 2022).

Scores are read as evidence that a query has a partner in the batch; a pair whose own evidence is not the largest is
believed mismatched. After warming up with every label 1, every epoch:
  1. label every pair by whether it has the most evidence of its batch              -> _label
then in every step:
  2. the Dirichlet loss of both directions, its target all zero for label 0         -> _step
  3. a hinge over the H hardest negatives of the pairs labelled 1, where H falls
     from the whole batch to a few as steps pass                                    -> _hardness
What was changed, and why, is in PAPERS.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from mispair.functional.evidential_losses import dirichlet_loss, evidence, rivalry, uncertainty
from mispair.functional.loss_split import with_known
from mispair.functional.ranking_losses import triplet
from mispair.methods.about import About
from mispair.methods.base import MethodBase, MethodConfig, weighed
from mispair.protocols import Run
from mispair.retrieval_module import RetrievalModule
from mispair.types import PairBatch, Split


class DECLConfig(MethodConfig):
    """As published; see PAPERS.md."""

    name: Literal["decl"] = "decl"
    warmup_epochs: int = Field(default=5, ge=0)
    temperature: float = Field(default=0.1, gt=0.0)
    kl_weight: float = Field(default=0.1, ge=0.0)
    ranking_weight: float = Field(default=0.8, ge=0.0)
    margin: float = Field(default=0.2, gt=0.0)
    hardening: float = Field(default=0.025, ge=0.0)  # negatives fewer per step
    hardest: int = Field(default=5, ge=1)  # negatives that are always left


class DECL(MethodBase[DECLConfig]):
    """One network whose logits are evidence."""

    Config = DECLConfig
    about = About(
        name="decl",
        paper="Deep Evidential Learning with Noisy Correspondence for Cross-modal Retrieval",
        venue="ACM MM",
        year=2022,
        url="https://doi.org/10.1145/3503161.3547922",
        networks=1,
        cost=1.3,
        mismatched="gets the label 'no partner in this batch' (no evidence at all) and leaves the ranking loss",
    )
    takes_known = True

    def __init__(self, config: DECLConfig, make_network: Callable[[], RetrievalModule], batch_size: int) -> None:
        super().__init__(config, make_network, batch_size)
        self.steps = 0  # of the whole run, warm-up included
        self._matched: Tensor | None = None  # (N,) bool, this epoch's labels; None while warming up

    def epoch(self, epoch: int, run: Run) -> None:
        self._matched = self._label(run) if epoch >= self.config.warmup_epochs else None
        run.sweep(self._step, batch=None)

    def _label(self, run: Run) -> Tensor:
        """1 where a pair has the most evidence of its batch, both directions together."""

        def score(batch: PairBatch) -> dict[str, Tensor]:
            evidences = evidence(self._logits(run, batch), self.config.temperature)
            return {"rivalry": rivalry(evidences), "uncertainty": uncertainty(evidences)}

        columns = run.survey(score)
        split = with_known(Split(columns["rivalry"], columns["rivalry"] > 0.5), run.known, 0)
        run.log(matched=1 - split.mismatched.mean(), uncertainty=columns["uncertainty"].mean())
        run.record(signal=columns["rivalry"], posterior=split.p_mismatch, mismatched=split.mismatched)
        return torch.from_numpy(~split.mismatched).to(self.device)

    def _step(self, run: Run, batch: PairBatch) -> None:
        config = self.config
        logits = self._logits(run, batch)
        matched = torch.ones(len(logits), dtype=torch.bool, device=logits.device)
        if self._matched is not None:
            matched = self._matched[batch.pair_ids]
        evidences, target = evidence(logits, config.temperature), torch.diag(matched.to(logits.dtype))
        belief = dirichlet_loss(evidences, target, config.kl_weight)
        belief = belief + dirichlet_loss(evidences.T, target, config.kl_weight)
        ranking = triplet(torch.tanh(logits), config.margin, "top_k", self._hardness(len(logits))) * matched
        run.log(loss=belief.mean(), hinge=ranking.sum() / matched.sum().clamp(min=1))
        belief, ranking = weighed(run, belief, batch.pair_ids), weighed(run, ranking, batch.pair_ids)
        run.minimize("net", belief.mean() + config.ranking_weight * ranking.sum())
        self.steps += 1

    def _hardness(self, n: int) -> int:
        """How many of the hardest negatives count now."""
        left = math.floor(n - self.config.hardening * self.steps)
        return max(left, self.config.hardest)

    def _logits(self, run: Run, batch: PairBatch) -> Tensor:
        return self.net.similarity(*run.encode(self.net, batch)).float()

    def state(self) -> dict[str, Any]:
        return {"steps": self.steps}

    def restore(self, state: dict[str, Any]) -> None:
        self.steps = state["steps"]
