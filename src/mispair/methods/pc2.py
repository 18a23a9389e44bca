"""PC2: pseudo-classification and pseudo-captions (Duan et al., ACM MM 2024, arXiv:2408.01349).

Two networks, and a classifier g beside each that both sides share. After warming up, every epoch:
  1. both score every given pair; each splits by a Gaussian mixture of its losses              -> CoTeaching._split
     and sees how far g's prediction for each image has moved since the last epoch             -> _survey
  2. each network trains on the split of the other:
     a. matched pairs: triplets with margins by both trusts, and g(image) predicts the class of g(text) -> _believed
     b. in later epochs a mismatched image gets the text of the matched pair that g predicts most alike, with that
        likeness as the label of its margin                                                    -> _captioned
Scores of the two networks are averaged. What was changed, and why, is in PAPERS.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import normalize

from mispair.functional.ranking_losses import smallest, soft_margin, triplet
from mispair.functional.soft_labels import classes_in_use, pseudo_classification, refine_label
from mispair.methods.about import About
from mispair.methods.base import mean_vectors, scores_of, weighed
from mispair.methods.coteaching import CoTeaching, CoTeachingConfig
from mispair.protocols import Run
from mispair.retrieval_module import RetrievalModule
from mispair.types import Encoded, PairBatch, Split

HIDDEN = 256  # of the classifier, as released


class PC2Config(CoTeachingConfig):
    """As published, where it does not depend on the number of epochs."""

    name: Literal["pc2"] = "pc2"
    warmup_epochs: int = Field(default=1, ge=1)
    warmup_share: float = Field(default=0.5, gt=0.0, le=1.0)  # of a batch, its smallest losses, that warm-up trains on
    classes: int = Field(default=128, ge=2)
    entropy_weight: float = Field(default=1.0, ge=0.0)
    label_above: float = Field(default=0.5, ge=0.0, lt=1.0)  # likenesses up to this count as 0


class PC2(CoTeaching[PC2Config]):
    """Captions for those who have a wrong one, by class."""

    Config = PC2Config
    about = About(
        name="pc2",
        paper="PC2: Pseudo-Classification Based Pseudo-Captioning for Noisy Correspondence Learning",
        venue="ACM MM",
        year=2024,
        url="https://arxiv.org/abs/2408.01349",
        networks=2,
        cost=1.7,
        mismatched="waits for later epochs, then has the caption of the trusted pair that is classified most alike",
    )

    def __init__(self, config: PC2Config, make_network: Callable[[], RetrievalModule], batch_size: int) -> None:
        super().__init__(config, make_network, batch_size)
        self.heads = {
            name: nn.Sequential(nn.Linear(net.width, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, config.classes))
            for name, net in self.networks.items()
        }
        self.modules = {**self.modules, **{f"head_{name}": head for name, head in self.heads.items()}}
        self.predicted: dict[str, Tensor] = {}  # by network: (pairs, classes) as the last survey saw them
        self._steady: dict[str, NDArray[np.float64]] = {}  # by network: (pairs,) trust in pairs whose class stays

    def _warm_up(self, student: str, run: Run, batch: PairBatch) -> None:
        images, texts = run.encode(self.networks[student], batch)
        losses = triplet(scores_of(self.networks[student], images, texts), self.config.margin, "mean")
        weights = None if run.weights is None else run.weights[batch.pair_ids]
        ranked = smallest(losses, self.config.warmup_share, weights).sum()
        run.log(loss=losses.mean())
        run.minimize(student, ranked + self._classified(run, student, batch, images, texts))

    def _survey(self, run: Run) -> dict[str, NDArray[np.float64]]:
        """Losses by network; on the way, how steady g is about each image."""
        columns = run.survey(partial(self._judge, run), passing=tuple(f"classes_{name}" for name in self.networks))

        def compare() -> dict[str, NDArray[Any]]:
            moved = {}
            for name in self.networks:
                now = torch.from_numpy(columns[f"classes_{name}"]).float()
                if name in self.predicted:
                    before = self.predicted[name].clamp(min=1e-12).log()
                    moved[name] = (now * (now.clamp(min=1e-12).log() - before)).sum(1).double().numpy()
                self.predicted[name] = now
            return moved

        moved = run.once(compare)
        self._steady = {name: 1 - self._divide(values)[0].p_mismatch for name, values in moved.items()}
        return {name: columns[name] for name in self.networks}

    def _judge(self, run: Run, batch: PairBatch) -> dict[str, Tensor]:
        surveyed: dict[str, Tensor] = {}
        for name, net in self.networks.items():
            images, texts = run.encode(net, batch)
            surveyed[name] = triplet(scores_of(net, images, texts), self.config.margin, "mean")
            surveyed[f"classes_{name}"] = self._classes(name, images)
        return surveyed

    def _stepper(self, student: str, teacher: str, split: Split) -> Callable[..., None]:
        labels = torch.from_numpy(1 - split.p_mismatch)
        steady = self._steady.get(teacher)
        if steady is not None:  # an unsteady pair gets no credit for it
            labels = refine_label(labels, torch.from_numpy(np.where(steady > 1 - self.config.matched_below, steady, 0)))
        return partial(self._step, student, labels.float().to(self.device))

    def _step(
        self, student: str, labels: Tensor, run: Run, matched: PairBatch, mismatched: PairBatch | None = None
    ) -> None:
        images, texts = run.encode(self.networks[student], matched)
        losses = self._losses(scores_of(self.networks[student], images, texts, sparse=True), labels[matched.pair_ids])
        run.log(loss=losses.mean())
        ranked = weighed(run, losses, matched.pair_ids).sum()
        run.minimize(student, ranked + self._classified(run, student, matched, images, texts))
        if mismatched is not None:
            run.log(mismatched_loss=self._captioned(run, student, matched, mismatched))

    def _captioned(self, run: Run, student: str, matched: PairBatch, mismatched: PairBatch) -> Tensor:
        """One step on mismatched images with the captions of matched ones; the mean loss."""
        net = self.networks[student]
        images, texts = run.encode(net, matched)
        others = run.encode_images(net, mismatched)
        with torch.no_grad():
            # An image may be there with several captions, and a young classifier finds all nearly alike: of equals the
            # first is taken, not the one that this processor happens to round up.
            unit = [normalize(self._classes(student, side, torch.float64), dim=-1) for side in (others, images)]
            likeness, nearest = (unit[0] @ unit[1].T).round(decimals=6).max(1)
            labels = torch.where(likeness > self.config.label_above, likeness, 0.0).clamp(max=1.0).float()
        shared = nearest[:, None] == nearest[None]  # who has the same caption is no negative
        shared.fill_diagonal_(False)
        scores = scores_of(net, others, texts.take(nearest), sparse=True)
        losses = self._losses(scores.masked_fill(shared, -torch.inf), labels)
        run.minimize(student, weighed(run, losses, mismatched.pair_ids).sum())
        return losses.detach().mean()

    def _classified(self, run: Run, student: str, batch: PairBatch, images: Encoded, texts: Encoded) -> Tensor:
        """The classifier learns from the vectors as they are; then what the vectors learn from it, ()."""
        head, weight = self.heads[student], self.config.entropy_weight
        sides = [mean_vectors(side).float() for side in (images, texts)]

        def loss(seen: Tensor, read: Tensor) -> Tensor:
            logits = head(seen).float()
            losses = weighed(run, pseudo_classification(logits, head(read).float()), batch.pair_ids)
            counted = None if run.weights is None else run.weights[batch.pair_ids]
            return losses.mean() - weight * classes_in_use(logits, counted)

        run.minimize(f"head_{student}", loss(*(side.detach() for side in sides)))
        return loss(*sides)

    def _classes(self, name: str, images: Encoded, precision: torch.dtype = torch.float32) -> Tensor:
        """What g makes of images: probabilities (n, classes)."""
        predicted: Tensor = self.heads[name](mean_vectors(images)).to(precision).softmax(1)
        return predicted

    def _losses(self, scores: Tensor, labels: Tensor) -> Tensor:
        return triplet(scores, soft_margin(self.config.margin, labels, self.config.curve))

    def state(self) -> dict[str, Any]:
        return {"predicted": {name: values.clone() for name, values in self.predicted.items()}}

    def restore(self, state: dict[str, Any]) -> None:
        self.predicted = {name: values.clone() for name, values in state["predicted"].items()}
