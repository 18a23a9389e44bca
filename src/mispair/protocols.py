"""What the parts promise each other. No code inside: read this file to know the seams.

A `Method` is handed a `Run` with three verbs, `survey`, `sweep` and `minimize`. The trainer implements them and
names no method; a method calls them and names no optimizer, device or process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mispair.retrieval_module import RetrievalModule
from mispair.types import Alignment, Encoded, PairBatch, Untrained


class RetrievalModel(Protocol):
    """Scores images against texts. Both sides are encoded once; scoring is separate and may be expensive."""

    def encode_images(self, images: Tensor, mask: Tensor) -> Encoded:
        """images (N, R, F), mask (N, R) -> Encoded (N, T, D)."""
        ...

    def encode_texts(self, texts: Tensor, mask: Tensor) -> Encoded:
        """texts (N, L) word ids or (N, L, F') features, mask (N, L) -> Encoded (N, T, D)."""
        ...

    def similarity(self, images: Encoded, texts: Encoded, *, sparse: bool = False) -> Tensor:
        """Raw logits of every image against every text, (n, m).

        `sparse`: the loss will read few of them (hardest negatives), so a costly model had better keep nothing and
        compute those again. The same logits and gradients either way.
        """
        ...

    def paired(self, images: Encoded, texts: Encoded, rows: Tensor, cols: Tensor) -> Tensor:
        """Raw logits of the listed cells only: image rows[k] against text cols[k], (k,)."""
        ...

    def link(self, logits: Tensor) -> Tensor:
        """The model's default score of a logit (sigmoid, identity, ...); monotone, any shape."""
        ...

    def pool_images(self, images: Encoded) -> Tensor:
        """One unit vector per image, (N, D); their inner product is the cheap stand-in for `similarity`."""
        ...

    def pool_texts(self, texts: Encoded) -> Tensor:
        """One unit vector per text, (N, D)."""
        ...


@dataclass(frozen=True)
class Companions:
    """A stream that follows the others: `choose` gets the pair ids of a step by stream and names those to come along.

    Only one side of them is read; the other side of the batch is empty. Batches are read ahead, in another thread, so
    `choose` may depend on nothing that a step changes.
    """

    choose: Callable[[Mapping[str, NDArray[np.int64]]], NDArray[np.int64]]
    side: Literal["images", "texts"]


class Run(Protocol):
    """What the trainer offers a method during one epoch."""

    rng: torch.Generator
    pairs: int  # training pairs there are; pair ids lie below it
    image_of: NDArray[np.int64]  # (pairs,) which image each pair shows, as given
    known: NDArray[np.int8] | None  # (pairs,) what people said: 1 mismatched, 0 matched, -1 nothing; None: of no pair
    weights: Tensor | None  # (pairs,) by pair id: how much of a pair's own loss counts; None where all count alike

    def untrained(self) -> Untrained | None:
        """Images and texts as vectors of nothing trained; None where a network of one's own reads pictures."""
        ...

    def encode(self, model: RetrievalModel, batch: PairBatch) -> tuple[Encoded, Encoded]:
        """Images and texts of the whole batch through the model's encoders."""
        ...

    def encode_images(self, model: RetrievalModel, batch: PairBatch) -> Encoded:
        """The images of the whole batch alone."""
        ...

    def encode_texts(self, model: RetrievalModel, batch: PairBatch) -> Encoded:
        """The texts of the whole batch alone."""
        ...

    def survey(
        self, score: Callable[[PairBatch], Mapping[str, Tensor]], passing: tuple[str, ...] = ()
    ) -> dict[str, NDArray[Any]]:
        """Score every training pair once (evaluation mode, no gradient); arrays come back by pair id.

        `score` gives a number (B,) or a vector (B, D) per pair. Each pair meets a full batch: the tail is wrapped, so
        no pair is judged against fewer negatives. Columns named in `passing` are too large to save: they are missing
        when a killed run goes on inside the epoch, and the method's own state must hold what came of them.
        """
        ...

    def once(self, compute: Callable[[], dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
        """Arrays computed once in an epoch, after a survey: a run that goes on inside it gets them as they were saved.

        For what came of columns that were `passing`.
        """
        ...

    def sweep(self, step: Callable[..., None], **streams: NDArray[np.int64] | Companions | None) -> None:
        """Call `step(run, **batches)` over named streams of pair ids in lockstep (None: all pairs).

        The first stream sets the length, shorter ones start over, every batch is full; companions follow.
        """
        ...

    def halves(self, batch: PairBatch) -> tuple[PairBatch, PairBatch]:
        """The batch twice: with one half of every text's words, drawn anew in each step, and with the other."""
        ...

    def minimize(self, module: str, loss: Tensor) -> None:
        """One optimizer step of `modules[module]` on the scalar `loss`."""
        ...

    def restart(self, module: str, make: Callable[[], nn.Module]) -> None:
        """Give `modules[module]` the parameters of a module just made, and an optimizer that remembers nothing."""
        ...

    def log(self, **scalars: float | Tensor) -> None:
        """Record values; the epoch's line shows their means."""
        ...

    def record(self, **columns: NDArray[Any]) -> None:
        """Keep per-pair arrays of this epoch, keyed by pair id: the split's history."""
        ...

    def note(self, sentence: str) -> None:
        """Tell the person who trains something they would otherwise be puzzled by; each sentence once."""
        ...


class Rematcher(Protocol):
    """The part of a method that proposes other partners for pairs; for looking at, not for training."""

    def candidates(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Pairs whose images are compared with the texts of the pairs `ids`, (B,) -> (q,)."""
        ...

    def rematch(self, run: Run, images: PairBatch, texts: PairBatch) -> Alignment:
        """The refined alignment (q, B) of the images of one batch with the texts of the other; no gradient."""
        ...


class Method(Protocol):
    """One paper: how an epoch turns given pairs into updates."""

    modules: Mapping[str, nn.Module]  # one optimizer and one checkpoint entry per key
    networks: Mapping[str, RetrievalModule]  # those of `modules` whose mean score ranks: validation, audit, search
    rate_scale: Mapping[str, float]  # learning rate of a module relative to the run's; 1 where not named
    teacher: float  # not 0: surveys ask the running mean of the networks' steps, with this decay where the run has none

    def epoch(self, epoch: int, run: Run) -> None: ...

    def rematcher(self) -> Rematcher | None:
        """What proposes partners for mismatched pairs, as of the last epoch; None where the method does not."""
        ...

    def state(self) -> dict[str, Any]:
        """Whatever the modules do not hold: queues, counters, memories."""
        ...

    def restore(self, state: dict[str, Any]) -> None: ...


class Evaluator(Protocol):
    """Judges models after an epoch; larger `primary` is better."""

    primary: str

    def __call__(self, models: Sequence[RetrievalModel]) -> dict[str, float]: ...
