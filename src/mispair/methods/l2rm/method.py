"""L2RM: rematch mismatched pairs with partial optimal transport (Han et al., CVPR 2024, arXiv:2403.05105).

After warming up on all pairs, every epoch (Algorithm 1):
  1. score every given pair and split by a two-component mixture of the losses     -> Identification     (Eq. 4)
then in every step, on a matched and a mismatched batch:
  2. teach the transport cost on pairs known to match, hidden among mismatched     -> Rematching.teach  (Eq. 6)
  3. rematch the mismatched batch by masked partial transport                      -> Rematching.plan   (Eq. 7-9)
  4. train on the matched pairs and on the refined alignment                       -> _step             (Eq. 10-11)
Beyond the paper, pairs are judged by all others before the first step (`judged_by_others`), which weighs the warm-up;
where an image has one text, they train as much as they are trusted to the end, and texts teach themselves (`siblings`).

Every ablation and study of the paper is a value of `L2RMConfig`. `paper()` and `official()` are the method as written
and as released; the defaults are what measured best. The differences, with reasons, are in PAPERS.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor

from mispair.functional.divergence import rematching_loss
from mispair.functional.pair_losses import PairLoss, pair_loss
from mispair.methods.about import About
from mispair.methods.base import MethodBase, scores_of, weighed
from mispair.methods.l2rm.candidates import VECTORS, make_candidates
from mispair.methods.l2rm.config import L2RMConfig, Reduction
from mispair.methods.l2rm.costs import make_cost
from mispair.methods.l2rm.identification import Identification, rather_matched
from mispair.methods.l2rm.rematching import Rematching
from mispair.methods.l2rm.siblings import SiblingLoss
from mispair.methods.l2rm.witness import TEACHER, standing
from mispair.protocols import Rematcher, Run
from mispair.retrieval_module import RetrievalModule
from mispair.types import Encoded, PairBatch, Split

STATEFUL = ("identification", "rematching", "siblings")  # parts that remember something between epochs


class L2RM(MethodBase[L2RMConfig]):
    """One retrieval network and the cost that rematches for it."""

    Config = L2RMConfig
    about = About(
        name="l2rm",
        paper="Learning to Rematch Mismatched Pairs for Robust Cross-Modal Retrieval",
        venue="CVPR",
        year=2024,
        url="https://arxiv.org/abs/2403.05105",
        networks=1,
        cost=1.7,
        mismatched="is rematched: optimal transport finds its caption a better image in the whole set",
    )
    takes_known = True
    presets: ClassVar = {"l2rm-paper": L2RMConfig.paper, "l2rm-official": L2RMConfig.official}

    def __init__(self, config: L2RMConfig, make_network: Callable[[], RetrievalModule], batch_size: int) -> None:
        super().__init__(config, make_network, batch_size)
        self.identification = Identification(config, batch_size)
        self.cost = make_cost(config.cost.kind, batch_size)
        if self.cost.learns:
            self.modules = {**self.modules, "cost": self.cost}
        self.rate_scale = {"cost": config.cost.rate}
        self.teacher = TEACHER if self.identification.asks_witness else 0.0
        self.candidates = make_candidates(config.candidates, batch_size)
        siblings = config.siblings
        self.siblings = SiblingLoss(siblings.when, siblings.weight, config.temperature, siblings.halves)
        self.rematching = Rematching(config, self.net, self.cost, self.candidates, self.siblings, batch_size)
        self._inside = False  # whether an epoch that rematches is under way
        self._rematch_weight = config.rematch_weight

    def epoch(self, epoch: int, run: Run) -> None:
        self.siblings.begin(run.image_of, epoch)
        if epoch == 0 and self.identification.asks_witness:
            if not getattr(self.net, "starts_informed", False):
                run.note(
                    f"method.split.evidence={self.config.split.evidence} asks the network before its first step, and"
                    " this one was drawn by chance and knows nothing then: take dual on an encoder, or evidence=auto"
                )
            columns = run.survey(lambda batch: standing(scores_of(self.net, *run.encode(self.net, batch))))
            self.identification.ask_witness(columns, self.device)
        if epoch == 0:
            self.identification.ask_others(run, self.device)
        if epoch < self.config.warmup_epochs:
            self.siblings.half_share = 1.0
            run.sweep(self._warm_up, batch=None, **self.siblings.streams("batch"))
            return
        split = self._split(run)
        matched, mismatched = split.matched_ids, split.mismatched_ids
        run.log(matched=len(matched) / len(split.mismatched))
        believed = matched if self.identification.trust is None else None
        if len(mismatched) < self.batch_size or self.config.rematch_weight == 0:
            run.sweep(self._matched_only, matched=believed, **self.siblings.streams("matched"))
            return
        self._rematch_weight = self.config.rematch_weight
        if self.config.rematch_per == "pair":
            # Fewer pairs come round more often: where a tenth is mismatched, each of them nine times as often.
            self._rematch_weight *= min(1.0, len(mismatched) / len(matched))
        beside = {**self.siblings.streams("matched", "mismatched"), **self.candidates.streams()}
        self._inside = True
        run.sweep(self._step, matched=believed, mismatched=mismatched, **beside)
        self._inside = False

    def _warm_up(self, run: Run, batch: PairBatch, batch_siblings: PairBatch | None = None) -> None:
        reduction: Reduction = "sum" if self.config.warmup_loss == "triplet" else "mean"
        self._believe(run, batch, batch_siblings, self.config.warmup_loss, reduction)

    def _matched_only(self, run: Run, matched: PairBatch, matched_siblings: PairBatch | None = None) -> None:
        self._believe(run, matched, matched_siblings, self.config.matched_loss, self.config.matched_reduction)

    def _believe(self, run: Run, batch: PairBatch, siblings: PairBatch | None, kind: PairLoss, how: Reduction) -> None:
        """One step on pairs as they are given."""
        images, texts = run.encode(self.net, batch)
        losses = self._loss(kind, images, texts)
        run.log(loss=losses.mean())
        losses = weighed(run, losses, batch.pair_ids)
        agreeing = self.siblings.loss(run, self.net, batch, texts, siblings)
        run.minimize("net", _reduce(losses, how, self.identification.trust_in(batch)) + agreeing)

    def _split(self, run: Run) -> Split:
        """Identify mismatched pairs (Sec. 4.1) from one pass over all pairs, and prepare what rematches them."""
        self.identification.begin(self.siblings.none)
        columns = run.survey(lambda batch: self._survey(run, batch), passing=VECTORS)
        identified = self.identification.identify(run, columns, self.device)
        self.siblings.half_share = min(1.0, 2 * identified.rate)  # texts teach as much as pairs fail to
        self.rematching.begin(identified.split, identified.apart, columns, run.image_of)
        return identified.split

    def _survey(self, run: Run, batch: PairBatch) -> dict[str, Tensor]:
        """By pair: its loss and cost, its score and the best score its text has with another image of the batch."""
        images, texts = run.encode(self.net, batch)
        scores = scores_of(self.net, images, texts)
        others = scores.masked_fill(torch.eye(len(scores), dtype=torch.bool, device=scores.device), -torch.inf)
        return {
            "cost": self.rematching.transport_cost(scores, images, texts).diagonal(),
            "given": scores.diagonal(),
            "best": others.amax(0),
            **self.identification.survey(scores),
            **self.candidates.survey(self.net, images, texts),
        }

    def _step(
        self,
        run: Run,
        matched: PairBatch,
        mismatched: PairBatch,
        nearest: PairBatch | None = None,
        matched_siblings: PairBatch | None = None,
        mismatched_siblings: PairBatch | None = None,
    ) -> None:
        """Teach the cost, rematch, and train on both batches (Eq. 11)."""
        config, net = self.config, self.net
        images, texts = run.encode(net, matched)
        compared = self.candidates.gather(run, net, mismatched, nearest)
        trust = self.identification.trust_in(matched)
        if self.cost.learns:
            # A cost by row is a layer of one batch's width: it takes the batch whole.
            sure = (images, texts) if self.cost.by_row else rather_matched(images, texts, trust)
            run.minimize("cost", self.rematching.teach(run, *sure, compared.images))
        ranking = self._loss(config.matched_loss, images, texts)
        scores = scores_of(net, compared.images, compared.texts)
        alignment = self.rematching.plan(run, scores, compared)
        by_image, by_text = rematching_loss(scores, alignment.plan, config.temperature, config.divergence)
        run.log(loss=ranking.mean(), rematch=by_image.mean() + by_text.mean())
        ranking = weighed(run, ranking, matched.pair_ids)
        by_image, by_text = weighed(run, by_image, compared.image_ids), weighed(run, by_text, compared.text_ids)
        refined = _reduce(by_image, config.rematch_reduction) + _reduce(by_text, config.rematch_reduction)
        run.log(mass=alignment.transported, converged=alignment.done.float())
        agreeing = self.siblings.loss(run, net, matched, texts, matched_siblings)
        agreeing = (agreeing + self.siblings.loss(run, net, mismatched, compared.own_texts, mismatched_siblings)) / 2
        believed = _reduce(ranking, config.matched_reduction, trust)
        run.minimize("net", believed + self._rematch_weight * refined + agreeing)

    def _loss(self, kind: PairLoss, images: Encoded, texts: Encoded) -> Tensor:
        scores = scores_of(self.net, images, texts, sparse=kind == "triplet")  # which reads hardest negatives only
        return pair_loss(scores, kind, self.config.margin, self.config.temperature)

    def rematcher(self) -> Rematcher:
        return self.rematching

    def state(self) -> dict[str, Any]:
        parts = {name: getattr(self, name).state() for name in STATEFUL}
        return {**parts, "candidates": self.candidates.state(self._inside)}

    def restore(self, state: dict[str, Any]) -> None:
        for name in (*STATEFUL, "candidates"):
            getattr(self, name).restore(state[name])


def _reduce(values: Tensor, how: Reduction, weight: Tensor | None = None) -> Tensor:
    if weight is None:
        return values.sum() if how == "sum" else values.mean()
    total = (weight * values).sum()
    return total if how == "sum" else total / weight.sum().clamp(min=1.0)
