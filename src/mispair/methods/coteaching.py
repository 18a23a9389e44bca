"""What methods that co-teach two networks share: who learns from whom, and the epoch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from mispair.functional.loss_split import split_losses, with_known
from mispair.functional.mixture import MixtureFit, WhenUnimodal
from mispair.functional.mixture_families import Family
from mispair.functional.ranking_losses import MarginCurve, triplet
from mispair.methods.base import MethodBase, MethodConfig, scores_of, weighed
from mispair.protocols import Run
from mispair.retrieval_module import RetrievalModule
from mispair.types import PairBatch, Split


class CoTeachingConfig(MethodConfig):
    """Values that methods with two networks share; a method adds its own and its defaults."""

    warmup_epochs: int = Field(default=5, ge=1)
    noisy_from: int = Field(default=5, ge=0)  # epochs after warm-up without mismatched pairs; published: half of them
    margin: float = Field(default=0.2, gt=0.0)
    curve: MarginCurve = "exponential"  # from label to margin
    mixture: Family = "gaussian"
    matched_below: float = Field(default=0.5, gt=0.0, lt=1.0)  # posterior under which a pair is trained on as given
    when_unimodal: WhenUnimodal = "posterior"  # what is mismatched if losses show one group

    @property
    def mixture_family(self) -> Family:
        return self.mixture


P = TypeVar("P", bound=CoTeachingConfig)
TURNS = (("a", "b"), ("b", "a"))  # (who learns, whose split it learns from)


class CoTeaching(MethodBase[P]):
    """Two networks, each trained on what the other believes; scores are averaged.

    A method says what warming up minimizes (`_warm_up_loss`), how losses divide the pairs (`_divide`), what a step is
    (`_stepper`) and which margins labels deserve (`_losses`).
    """

    network_names = ("a", "b")
    takes_known = True

    def epoch(self, epoch: int, run: Run) -> None:
        if epoch < self.config.warmup_epochs:
            for student, _ in TURNS:
                run.sweep(partial(self._warm_up, student), batch=None)
            return
        splits = self._split(run)
        use_mismatched = epoch >= self.config.warmup_epochs + self.config.noisy_from
        for student, teacher in TURNS:
            streams = streams_of(splits[teacher], use_mismatched, self.batch_size)
            run.sweep(self._stepper(student, teacher, splits[teacher]), **streams)

    def _warm_up(self, student: str, run: Run, batch: PairBatch) -> None:
        losses = triplet(score(run, self.networks[student], batch), self.config.margin, "mean")
        run.log(loss=losses.mean())
        weights = None if run.weights is None else run.weights[batch.pair_ids]
        run.minimize(student, self._warm_up_loss(losses, weights))

    def _split(self, run: Run) -> dict[str, Split]:
        """Each network's division of the pairs, from its mean-negative triplet loss on them."""
        losses = self._survey(run)
        splits: dict[str, Split] = {}
        for name, values in losses.items():
            split, fit = self._divide(values)
            splits[name] = with_known(split, run.known, self.batch_size)
            run.log(matched=1 - splits[name].mismatched.mean(), rate=fit.mismatch_rate)
        record_both(run, losses, splits)
        return splits

    def _survey(self, run: Run) -> dict[str, NDArray[np.float64]]:
        return survey_losses(run, self.networks, self.config.margin)

    def _divide(self, losses: NDArray[np.float64]) -> tuple[Split, MixtureFit]:
        config = self.config
        return split_losses(losses, config.mixture, self.batch_size, config.matched_below, config.when_unimodal)

    def _learn(self, run: Run, student: str, batch: PairBatch, labels: Tensor) -> Tensor:
        """One step on the hardest-negative triplet with the margins the labels deserve; the mean loss."""
        losses = self._losses(score(run, self.networks[student], batch, sparse=True), labels)
        run.minimize(student, weighed(run, losses, batch.pair_ids).sum())
        return losses.detach().mean()

    def _warm_up_loss(self, losses: Tensor, weights: Tensor | None) -> Tensor:
        return (losses if weights is None else losses * weights).sum()

    def _stepper(self, student: str, teacher: str, split: Split) -> Callable[..., None]:
        raise NotImplementedError

    def _losses(self, scores: Tensor, labels: Tensor) -> Tensor:
        raise NotImplementedError


def score(run: Run, network: RetrievalModule, batch: PairBatch, sparse: bool = False) -> Tensor:
    """Scores of every image of the batch against every text of it, (B, B); `sparse` for hardest negatives."""
    return scores_of(network, *run.encode(network, batch), sparse=sparse)


def survey_losses(run: Run, networks: Mapping[str, RetrievalModule], margin: float) -> dict[str, NDArray[np.float64]]:
    """Each network's mean-negative triplet loss on every pair, in one pass over the data."""
    return run.survey(
        lambda batch: {name: triplet(score(run, net, batch), margin, "mean") for name, net in networks.items()}
    )


def streams_of(split: Split, use_mismatched: bool, batch_size: int) -> dict[str, NDArray[np.int64]]:
    """What to sweep over. Fewer mismatched pairs than a batch are left out: they would meet themselves as negatives."""
    streams = {"matched": split.matched_ids}
    if use_mismatched and len(split.mismatched_ids) >= batch_size:
        streams["mismatched"] = split.mismatched_ids
    return streams


def record_both(run: Run, losses: dict[str, NDArray[np.float64]], splits: dict[str, Split]) -> None:
    """One history for two networks: their mean loss and posterior; mismatched is what both call so."""
    loss = (losses["a"] + losses["b"]) / 2
    posterior = (splits["a"].p_mismatch + splits["b"].p_mismatch) / 2
    both = splits["a"].mismatched & splits["b"].mismatched
    run.record(loss=loss, signal=loss, posterior=posterior, mismatched=both)
