"""What methods that co-teach two networks share: who learns from whom, and the epoch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from mispair.functional.mixture import MixtureFit
from mispair.functional.ranking import triplet
from mispair.functional.splitting import split_losses
from mispair.protocols import Run
from mispair.types import PairBatch, Split

PEERS = (("a", "b"), ("b", "a"))  # (who learns, whose split it learns from)


class Peers:
    """Two networks, each trained on what the other believes; scores are averaged.

    A method says what warming up minimizes (`_warm_up_loss`), how losses divide the pairs (`_divide`), what a step is
    (`_stepper`) and which margins labels deserve (`_losses`).
    """

    scorers: tuple[str, ...] = ("a", "b")
    rate_scale: Mapping[str, float] = {}

    def __init__(self, config: Any, a: nn.Module, b: nn.Module, batch_size: int) -> None:
        self.config = config
        self.modules: Mapping[str, nn.Module] = {"a": a, "b": b}
        self.batch_size = batch_size

    def epoch(self, epoch: int, run: Run) -> None:
        if epoch < self.config.warmup_epochs:
            for student, _ in PEERS:
                run.sweep(partial(self._warm_up, student), batch=None)
            return
        splits = self._split(run)
        use_mismatched = epoch >= self.config.warmup_epochs + self.config.noisy_from
        for student, teacher in PEERS:
            streams = streams_of(splits[teacher], use_mismatched, self.batch_size)
            run.sweep(self._stepper(student, teacher, splits[teacher]), **streams)

    def _warm_up(self, student: str, run: Run, batch: PairBatch) -> None:
        losses = triplet(score(run, self.modules[student], batch), self.config.margin, "mean")
        run.log(loss=losses.mean())
        run.minimize(student, self._warm_up_loss(losses))

    def _split(self, run: Run) -> dict[str, Split]:
        """Each network's division of the pairs, from its mean-negative triplet loss on them."""
        losses = survey_losses(run, self.modules, self.config.margin)
        splits: dict[str, Split] = {}
        for name, values in losses.items():
            splits[name], fit = self._divide(values)
            run.log(matched=1 - splits[name].mismatched.mean(), rate=fit.mismatch_rate)
        record_both(run, losses, splits)
        return splits

    def _divide(self, losses: NDArray[np.float64]) -> tuple[Split, MixtureFit]:
        config = self.config
        return split_losses(losses, config.mixture, self.batch_size, config.matched_below, config.when_unimodal)

    def _learn(self, run: Run, student: str, batch: PairBatch, labels: Tensor) -> Tensor:
        """One step on the hardest-negative triplet with the margins the labels deserve; the mean loss."""
        losses = self._losses(score(run, self.modules[student], batch, sparse=True), labels)
        run.minimize(student, losses.sum())
        return losses.detach().mean()

    def _warm_up_loss(self, losses: Tensor) -> Tensor:
        return losses.sum()

    def _stepper(self, student: str, teacher: str, split: Split) -> Callable[..., None]:
        raise NotImplementedError

    def _losses(self, scores: Tensor, labels: Tensor) -> Tensor:
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        pass


def score(run: Run, network: Any, batch: PairBatch, sparse: bool = False) -> Tensor:
    """Scores of every image of the batch against every text of it, (B, B); `sparse` for hardest negatives."""
    images, texts = run.encode(network, batch)
    scores: Tensor = network.link(network.similarity(images, texts, sparse=sparse)).float()
    return scores


def survey_losses(run: Run, networks: Mapping[str, nn.Module], margin: float) -> dict[str, NDArray[np.float64]]:
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
