"""BiCro: bi-directional cross-modal similarity consistency (Yang et al., CVPR 2023).

Two networks. After warming up on the pairs of smallest loss of every batch, every epoch:
  1. both score every given pair; each splits by a Beta mixture of its losses         -> CoTeaching._split
  2. each network trains on the split and the labels of the other:
     a. anchors: the matched pairs that hold best against their batch                 -> _label
     b. labels: do a pair's image and text agree in how near they are to an anchor?   -> _label
     c. in later epochs a step on the mismatched pairs, margins following the labels  -> CoTeaching._learn
     d. a step on the matched pairs                                                   -> CoTeaching._learn
Scores of the two networks are averaged.

The released code has slips; `compat` brings them back by name (see PAPERS.md).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, model_validator
from torch import Tensor

from mispair.device_to_host import to_host
from mispair.evaluation_mode import evaluation_mode
from mispair.functional.loss_split import trust_at_least
from mispair.functional.mixture import MixtureFit
from mispair.functional.mixture_families import Family
from mispair.functional.ranking_losses import smallest, soft_margin, triplet, triplet_by_cell
from mispair.functional.soft_labels import anchors, similarity_ratio
from mispair.methods.about import About
from mispair.methods.base import scores_of
from mispair.methods.coteaching import CoTeaching, CoTeachingConfig
from mispair.protocols import Run
from mispair.retrieval_module import RetrievalModule
from mispair.types import Encoded, PairBatch, Split

Slip = Literal["labels", "posterior", "margin"]


class BiCroConfig(CoTeachingConfig):
    """Defaults as published, where they do not depend on the number of epochs."""

    name: Literal["bicro"] = "bicro"
    warmup_share: float = Field(default=0.3, gt=0.0, le=1.0)  # of a batch, its smallest losses, that warm-up trains on
    mixture: Family = "beta"
    label_above: float = Field(default=0.5, ge=0.0, lt=1.0)  # soft labels up to this count as 0
    # The released code gives matched pairs each other's labels ("labels"), calls the pairs of smallest loss mismatched
    # ("posterior"), and holds captions competing for an image to their own margins ("margin"); "official": all three.
    compat: Literal["none", "labels", "posterior", "margin", "official"] = "none"

    @model_validator(mode="after")
    def _beta_slip(self) -> BiCroConfig:
        if self.compat in ("posterior", "official") and self.mixture != "beta":
            raise ValueError(f"method.compat={self.compat} is a slip of the Beta mixture, got mixture={self.mixture}")
        return self


class BiCro(CoTeaching[BiCroConfig]):
    """Labels from how alike a pair's two sides stand to trusted pairs."""

    Config = BiCroConfig
    about = About(
        name="bicro",
        paper="BiCro: Noisy Correspondence Rectification via Bi-directional Cross-modal Similarity Consistency",
        venue="CVPR",
        year=2023,
        url="https://arxiv.org/abs/2303.12419",
        networks=2,
        cost=2.4,
        mismatched="waits for later epochs, then has the margin its two sides agree on beside trusted pairs",
    )

    def _warm_up_loss(self, losses: Tensor, weights: Tensor | None) -> Tensor:
        return smallest(losses, self.config.warmup_share, weights).sum()

    def _divide(self, losses: NDArray[np.float64]) -> tuple[Split, MixtureFit]:
        split, fit = super()._divide(losses)
        if self._slips("posterior"):
            posterior = 1 - unclipped_posterior(fit, losses)
            split = Split(posterior, trust_at_least(posterior > self.config.matched_below, losses, self.batch_size))
        return split, fit

    def _stepper(self, student: str, teacher: str, split: Split) -> Callable[..., None]:
        return partial(self._step, student, teacher)

    def _step(
        self, student: str, teacher: str, run: Run, matched: PairBatch, mismatched: PairBatch | None = None
    ) -> None:
        labels, others = self._label(run, self.networks[teacher], matched, mismatched)
        if mismatched is not None:
            assert others is not None
            run.log(mismatched_loss=self._learn(run, student, mismatched, others))
        run.log(loss=self._learn(run, student, matched, labels))

    def _label(
        self, run: Run, judge: RetrievalModule, matched: PairBatch, mismatched: PairBatch | None
    ) -> tuple[Tensor, Tensor | None]:
        """Soft labels of both batches by the judge: agreement of the two sides about the nearest anchor."""
        with evaluation_mode(judge):
            images, texts = run.encode(judge, matched)
            chosen = anchors(scores_of(judge, images, texts), self.config.margin)
            image, text = _whole(images), _whole(texts)
            ratio = similarity_ratio(image, text, image[chosen], text[chosen])
            labels = self._matched_labels(ratio, chosen)
            if mismatched is None:
                return self._keep(labels), None
            others, captions = run.encode(judge, mismatched)
            ratio = similarity_ratio(_whole(others), _whole(captions), image[chosen], text[chosen])
            return self._keep(labels), self._keep(ratio)

    def _matched_labels(self, ratio: Tensor, chosen: Tensor) -> Tensor:
        """A matched pair starts from one half, an anchor is certain: (n,), (k,) -> (n,)."""
        labels = 0.5 + ratio / 2
        if self._slips("labels"):
            rest = torch.ones_like(ratio, dtype=torch.bool)
            rest[chosen] = False
            # The k-th pair that is no anchor gets the label of pair k, whoever that is.
            rest = to_host(rest).nonzero()[:, 0].to(labels.device)
            labels[rest] = labels[: len(rest)].clone()
        labels[chosen] = 1.0
        return labels

    def _keep(self, labels: Tensor) -> Tensor:
        return torch.where(labels > self.config.label_above, labels, 0.0).clamp(0, 1)

    def _losses(self, scores: Tensor, labels: Tensor) -> Tensor:
        margins = soft_margin(self.config.margin, labels, self.config.curve)
        return triplet_by_cell(scores, margins.expand_as(scores)) if self._slips("margin") else triplet(scores, margins)

    def _slips(self, what: Slip) -> bool:
        return self.config.compat in (what, "official")


def unclipped_posterior(fit: MixtureFit, losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(matched) at the normalised losses as they are, (N,) -> (N,): 0 at the very smallest, where densities vanish."""
    x = torch.from_numpy((losses - fit.low) / max(fit.high - fit.low, 1e-300))
    joint = [
        weight * torch.exp((a - 1) * x.log() + (b - 1) * (-x).log1p() + _log_beta(a, b))
        for weight, (a, b) in zip(fit.weights, fit.parameters, strict=True)
    ]
    return np.asarray((joint[0] / (joint[0] + joint[1])).nan_to_num(0.0).numpy())


def _log_beta(a: float, b: float) -> Tensor:
    a_, b_ = torch.tensor(a, dtype=torch.float64), torch.tensor(b, dtype=torch.float64)
    return torch.lgamma(a_ + b_) - torch.lgamma(a_) - torch.lgamma(b_)


def _whole(side: Encoded) -> Tensor:
    """The mean of an item's real parts, (N, T, D) -> (N, D)."""
    real = side.mask.unsqueeze(-1)
    return ((side.values * real).sum(1) / real.sum(1)).float()
