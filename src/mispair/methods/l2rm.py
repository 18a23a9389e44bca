"""L2RM: rematch mismatched pairs with partial optimal transport (Han et al., CVPR 2024, arXiv:2403.05105).

After warming up on all pairs, every epoch (Algorithm 1):
  1. score every given pair and split by a two-component mixture of the losses     -> _split   (Eq. 4)
then in every step, on a matched and a mismatched batch:
  2. teach the transport cost on pairs known to match, hidden among mismatched     -> _teach   (Eq. 6)
  3. rematch the mismatched batch by masked partial transport                      -> _rematch (Eq. 7-9, Algorithm 2)
  4. train on the matched pairs and on the refined alignment                       -> _step    (Eq. 10-11)

Every ablation and study of the paper is a value of `L2RMConfig`. `paper()` and `official()` are the method as written
and as released; the defaults are what measured best. The differences, with reasons, are in PAPERS.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from mispair.functional.contrast import info_nce, symmetric_cross_entropy
from mispair.functional.divergence import Divergence, alignment_divergence
from mispair.functional.mixture import MixtureFit, decide_mismatched, fit_beta_mixture, fit_gaussian_mixture
from mispair.functional.ranking import triplet
from mispair.functional.transport import partial_transport
from mispair.methods.about import About
from mispair.methods.costs import FixedCost, LearnedCost, PaperCost
from mispair.protocols import Run
from mispair.section import Section
from mispair.types import Alignment, Encoded, PairBatch, Split

ABOUT = About(
    name="l2rm",
    paper="Learning to Rematch Mismatched Pairs for Robust Cross-Modal Retrieval",
    venue="CVPR",
    year=2024,
    url="https://arxiv.org/abs/2403.05105",
    networks=1,
    cost=1.2,
    mismatched="is rematched: optimal transport gives its image another caption of the batch",
)

Loss = Literal["triplet", "infonce", "infonce_rce"]


class L2RMConfig(Section):
    """Defaults measured on real photographs; see PAPERS.md."""

    name: Literal["l2rm"] = "l2rm"
    warmup_epochs: int = Field(default=5, ge=1)
    warmup_loss: Loss = "infonce_rce"
    temperature: float = Field(default=0.05, gt=0.0)
    margin: float = Field(default=0.2, gt=0.0)

    signal: Literal["triplet_mean", "triplet_hardest", "infonce"] = "triplet_mean"  # the loss the mixture looks at
    history: float = Field(default=0.5, ge=0.0, lt=1.0)  # share of the past epochs' loss kept in it
    mixture: Literal["beta", "gaussian"] = "gaussian"
    matched_below: float = Field(default=0.5, gt=0.0, lt=1.0)  # posterior under which a pair is trained on as given

    matched_loss: Loss = "infonce_rce"
    matched_reduction: Literal["sum", "mean"] = "mean"
    cost: Literal["learned", "paper", "score", "cosine"] = "learned"
    cost_rate: float = Field(default=10.0, gt=0.0)  # learning rate of the cost relative to the network's
    mass: float = Field(default=0.1, gt=0.0, le=1.0)  # share of a batch that is rematched; 1 is full transport
    entropy: float = Field(default=0.03, gt=0.0)
    entropy_on: Literal["extended", "plan"] = "extended"
    stop: Literal["marginals", "potentials"] = "marginals"
    forbid_given: Literal["auto", "always", "never"] = "auto"  # auto: only where the losses show two groups
    divergence: Divergence = "sym_kl"
    rematch_weight: float = Field(default=1.0, ge=0.0)
    rematch_reduction: Literal["sum", "mean"] = "mean"
    queue: int = Field(default=0, ge=0)  # images of past mismatched batches that rematching sees besides the batch

    @classmethod
    def paper(cls) -> L2RMConfig:
        """As written."""
        return cls(
            signal="triplet_hardest", history=0.0, mixture="beta", matched_loss="triplet", matched_reduction="sum",
            cost="paper", cost_rate=0.01, entropy=0.01, forbid_given="always", rematch_reduction="sum",
        )  # fmt: skip

    @classmethod
    def official(cls) -> L2RMConfig:
        """As released."""
        return cls(
            signal="triplet_mean", history=0.0, mixture="beta", matched_loss="triplet", matched_reduction="sum",
            cost="paper", cost_rate=0.01, entropy=0.01, stop="potentials", forbid_given="always",
        )  # fmt: skip


class L2RM:
    """One retrieval network and the cost that rematches for it."""

    scorers: tuple[str, ...] = ("net",)

    def __init__(self, config: L2RMConfig, net: nn.Module, batch_size: int) -> None:
        self.config = config
        self.net: Any = net
        self.cost: Any = {"learned": LearnedCost, "score": FixedCost, "cosine": FixedCost}.get(
            config.cost, lambda: PaperCost(batch_size)
        )()
        self.modules: Mapping[str, nn.Module] = {"net": net}
        if config.cost in ("learned", "paper"):
            self.modules = {"net": net, "cost": self.cost}
        self.rate_scale: Mapping[str, float] = {"cost": config.cost_rate}
        self.batch_size = batch_size
        self.losses: NDArray[np.float64] | None = None  # running per-pair loss
        self.queue: list[PairBatch] = []  # past mismatched batches, newest first
        self.forbid = True

    # ------------------------------------------------------------------------------------------- Algorithm 1

    def epoch(self, epoch: int, run: Run) -> None:
        if epoch < self.config.warmup_epochs:
            run.sweep(self._warm_up, batch=None)
            return
        split, fit = self._split(run)
        self.forbid = self.config.forbid_given == "always" or (self.config.forbid_given == "auto" and fit.bimodal)
        run.log(matched=len(split.matched_ids) / len(split.mismatched), rate=fit.mismatch_rate)
        mismatched = split.mismatched_ids
        if len(mismatched) < self.batch_size or self.config.rematch_weight == 0:
            run.sweep(self._matched_only, matched=split.matched_ids)
        else:
            run.sweep(self._step, matched=split.matched_ids, mismatched=mismatched)

    def _warm_up(self, run: Run, batch: PairBatch) -> None:
        losses = self._loss(self.config.warmup_loss, self._scores(*run.encode(self.net, batch)))
        run.log(loss=losses.mean())
        run.minimize("net", losses.sum() if self.config.warmup_loss == "triplet" else losses.mean())

    def _split(self, run: Run) -> tuple[Split, MixtureFit]:
        """Identify mismatched pairs from the distribution of their losses (Sec. 4.1, Eq. 4)."""
        found = run.survey(lambda batch: {"loss": self._signal(self._scores(*run.encode(self.net, batch)))})["loss"]
        keep = self.config.history if self.losses is not None else 0.0
        self.losses = found if self.losses is None else keep * self.losses + (1 - keep) * found
        fit = (fit_beta_mixture if self.config.mixture == "beta" else fit_gaussian_mixture)(self.losses)
        posterior = fit.posterior_mismatched(self.losses)
        mismatched = decide_mismatched(fit, self.losses, self.config.matched_below, when_unimodal="posterior")
        if (~mismatched).sum() < self.batch_size:  # nothing to rank with: trust the least suspicious batch
            mismatched[np.argsort(self.losses, kind="stable")[: self.batch_size]] = False
        run.record(loss=found, signal=self.losses.copy(), posterior=posterior, mismatched=mismatched)
        return Split(posterior, mismatched), fit

    def _step(self, run: Run, matched: PairBatch, mismatched: PairBatch) -> None:
        images, texts = run.encode(self.net, matched)
        others, captions = run.encode(self.net, mismatched)
        image_ids = mismatched.pair_ids
        if self.config.queue:
            others, image_ids = self._with_queue(run, mismatched, others)
        if "cost" in self.modules:
            run.minimize("cost", self._teach(run, images, texts, others))
        ranking = self._loss(self.config.matched_loss, self._scores(images, texts))
        scores = self._scores(others, captions)
        alignment = self._rematch(scores, others, captions, image_ids, mismatched.pair_ids)
        config = self.config
        rows = alignment_divergence(scores, alignment.plan, config.temperature, "i2t", config.divergence)
        columns = alignment_divergence(scores, alignment.plan, config.temperature, "t2i", config.divergence)
        refined = _reduce(rows, config.rematch_reduction) + _reduce(columns, config.rematch_reduction)
        run.log(loss=ranking.mean(), rematch=rows.mean() + columns.mean())
        run.log(mass=alignment.transported, converged=alignment.done.float())
        run.minimize("net", _reduce(ranking, config.matched_reduction) + config.rematch_weight * refined)

    def _matched_only(self, run: Run, matched: PairBatch) -> None:
        losses = self._loss(self.config.matched_loss, self._scores(*run.encode(self.net, matched)))
        run.log(loss=losses.mean())
        run.minimize("net", _reduce(losses, self.config.matched_reduction))

    # ------------------------------------------------------------------------------------------- rematching

    def _teach(self, run: Run, images: Encoded, texts: Encoded, others: Encoded) -> Tensor:
        """Hide a few matched images among mismatched ones; their captions are known (Sec. 4.2, Eq. 6)."""
        count = int(torch.randint(1, max(2, self.batch_size // 10 + 1), (), generator=run.rng))
        keys = torch.randperm(len(texts), generator=run.rng)[:count].to(texts.mask.device)
        slots = torch.randperm(self.batch_size, generator=run.rng)[:count].to(texts.mask.device)
        with torch.no_grad():
            among = torch.arange(self.batch_size, device=slots.device)
            among[slots] = len(others) + keys
            hidden = others.detached().joined(images.detached()).take(among)
            if self.config.cost == "paper":  # reads only the rows of the matching cells
                scores, slots = self._scores(hidden.take(slots), texts.detached()), torch.arange(count)
            else:
                scores = self._scores(hidden, texts.detached())
        loss: Tensor = self.cost.teach(scores, slots.to(scores.device), keys)
        return loss

    @torch.no_grad()
    def rematch(self, run: Run, batch: PairBatch) -> Alignment:
        """The refined alignment of a batch of given pairs, images x captions; for looking at, not for training."""
        images, texts = run.encode(self.net, batch)
        return self._rematch(self._scores(images, texts), images, texts, batch.pair_ids, batch.pair_ids)

    @torch.no_grad()
    def _rematch(
        self, scores: Tensor, images: Encoded, texts: Encoded, image_ids: Tensor, text_ids: Tensor
    ) -> Alignment:
        """The refined alignment: partial transport without the given pairs (Eq. 7-9)."""
        config = self.config
        if config.cost == "cosine":
            scores = self.net.pool_images(images) @ self.net.pool_texts(texts).T
        given = image_ids[:, None] == text_ids[None, :] if self.forbid else None
        return partial_transport(
            self.cost(scores.detach().float()), config.mass, config.entropy, given,
            entropy_on=config.entropy_on, stop=config.stop, validate=False,
        )  # fmt: skip

    def _with_queue(self, run: Run, batch: PairBatch, images: Encoded) -> tuple[Encoded, Tensor]:
        """The batch's images and those of past mismatched batches, encoded anew (Appendix, limitation 2)."""
        ids = batch.pair_ids
        for past in self.queue:
            fresh = ~torch.isin(past.pair_ids, ids)  # a short stream brings the same pair again
            images = images.joined(run.encode(self.net, past)[0].take(fresh))
            ids = torch.cat([ids, past.pair_ids[fresh]])
        self.queue = [batch, *self.queue][: -(-self.config.queue // self.batch_size)]
        return images, ids

    # ------------------------------------------------------------------------------------------------ scores

    def _scores(self, images: Encoded, texts: Encoded) -> Tensor:
        scores: Tensor = self.net.link(self.net.similarity(images, texts)).float()
        return scores

    def _signal(self, scores: Tensor) -> Tensor:
        if self.config.signal == "infonce":
            return info_nce(scores, self.config.temperature)
        return triplet(scores, self.config.margin, "mean" if self.config.signal == "triplet_mean" else "hardest")

    def _loss(self, kind: Loss, scores: Tensor) -> Tensor:
        if kind == "triplet":
            return triplet(scores, self.config.margin)
        if kind == "infonce":
            return info_nce(scores, self.config.temperature)
        return symmetric_cross_entropy(scores, self.config.temperature)

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = {"forbid": self.forbid}
        if self.losses is not None:
            state["losses"] = torch.from_numpy(self.losses.copy())
        state["queue"] = [{name: getattr(batch, name) for name in batch.__slots__} for batch in self.queue]
        return state

    def restore(self, state: dict[str, Any]) -> None:
        self.forbid = state["forbid"]
        self.losses = state["losses"].numpy() if "losses" in state else None
        self.queue = [PairBatch(**batch) for batch in state["queue"]]


def _reduce(values: Tensor, how: Literal["sum", "mean"]) -> Tensor:
    return values.sum() if how == "sum" else values.mean()
