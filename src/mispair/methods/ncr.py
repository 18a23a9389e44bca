"""NCR: learning with noisy correspondence (Huang et al., NeurIPS 2021).

Two networks. After warming up on all pairs, every epoch:
  1. both score every given pair; each splits by a Gaussian mixture of its losses     -> CoTeaching._split
  2. each network trains on the split of the other:
     a. labels: the posterior, refined by what the network itself predicts            -> _step
     b. a step on the matched pairs, whose margins shrink with their labels           -> CoTeaching._learn
     c. in later epochs a second step on the mismatched pairs, labelled by both       -> CoTeaching._learn
Scores of the two networks are averaged.

The released code has slips in how margins meet scores; `compat` brings them back by name (see PAPERS.md).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from mispair.evaluation_mode import evaluation_mode
from mispair.functional.ranking_losses import soft_margin, triplet, triplet_by_cell
from mispair.functional.soft_labels import correspondence, refine_label
from mispair.methods.about import About
from mispair.methods.coteaching import CoTeaching, CoTeachingConfig, score
from mispair.protocols import Run
from mispair.types import PairBatch, Split


class NCRConfig(CoTeachingConfig):
    """Defaults as published, where they do not depend on the number of epochs."""

    name: Literal["ncr"] = "ncr"
    # The released code until June 2022 (margins unused), until November 2023 (everybody gets the prediction of the
    # batch's first pair) and since then (labels broadcast to all cells); "none" is what the paper means.
    compat: Literal["none", "hard_margin", "first_prediction", "broadcast"] = "none"


class NCR(CoTeaching[NCRConfig]):
    """Labels from posterior and prediction."""

    Config = NCRConfig
    about = About(
        name="ncr",
        paper="Learning with Noisy Correspondence for Cross-modal Matching",
        venue="NeurIPS",
        year=2021,
        url="https://proceedings.neurips.cc/paper/2021/hash/f5e62af885293cf4d511ceef31e61c80-Abstract.html",
        networks=2,
        cost=2.1,
        mismatched="waits for later epochs, then has the margin that both networks predict for it",
    )

    def _stepper(self, student: str, teacher: str, split: Split) -> Callable[..., None]:
        p_matched = torch.from_numpy(1 - split.p_mismatch).float().to(self.device)
        return partial(self._step, student, teacher, p_matched)

    def _step(
        self,
        student: str,
        teacher: str,
        p_matched: Tensor,
        run: Run,
        matched: PairBatch,
        mismatched: PairBatch | None = None,
    ) -> None:
        net, other, margin = self.networks[student], self.networks[teacher], self.config.margin
        with evaluation_mode(net, other):
            prediction = correspondence(score(run, net, matched), margin)
            labels = self._refine(p_matched[matched.pair_ids], prediction)
            if mismatched is not None:
                both = [correspondence(score(run, judge, mismatched), margin) for judge in (net, other)]
        run.log(loss=self._learn(run, student, matched, labels))
        if mismatched is not None:
            run.log(mismatched_loss=self._learn(run, student, mismatched, (both[0] + both[1]) / 2))

    def _refine(self, p_matched: Tensor, prediction: Tensor) -> Tensor:
        """Labels (n,) of matched pairs; (n, n) in the release that broadcast them."""
        if self.config.compat == "first_prediction":
            prediction = prediction[:1].expand_as(prediction)
        if self.config.compat == "broadcast":
            return p_matched.unsqueeze(1) + (1 - p_matched.unsqueeze(1)) * prediction
        return refine_label(p_matched, prediction)

    def _losses(self, scores: Tensor, labels: Tensor) -> Tensor:
        config = self.config
        if config.compat == "hard_margin":
            return triplet(scores, config.margin)
        margins = soft_margin(config.margin, labels.flatten(), config.curve).view_as(labels)
        if config.compat == "none":
            return triplet(scores, margins)
        # The released code holds the images competing for a caption to the margins of their own rows.
        return triplet_by_cell(scores, margins if margins.ndim == 2 else margins.unsqueeze(1).expand_as(scores))
