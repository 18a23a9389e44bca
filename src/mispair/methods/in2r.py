"""IN2R: a doubtful item learns from what its neighbours of the same kind are paired with (Liu et al., ICML 2026).

Intra-Modal Neighbors Never Lie, arXiv:2606.04061.

Two networks that begin alike. After warming up on all pairs, every epoch:
  1. both score every given pair; each splits by a Gaussian mixture of its losses         -> CoTeaching._split
  2. each network trains on the split of the other:
     a. matched pairs: triplets between the sides, and within each side between two passes -> _believed
     b. the most trusted of them enter the network's queue of vectors                      -> Queue
     c. a mismatched image gets a text prototype: the refined texts of its nearest images in the queue of the other
        network, and a mismatched text an image prototype; InfoNCE + RCE against the batch  -> _prototypes
Scores of the two networks are averaged. What was changed, and why, is in PAPERS.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import normalize

from mispair.device_to_host import to_host
from mispair.functional.contrastive_losses import symmetric_cross_entropy
from mispair.functional.ranking_losses import triplet
from mispair.methods.about import About
from mispair.methods.base import mean_vectors, scores_of, weighed
from mispair.methods.coteaching import TURNS, CoTeaching, CoTeachingConfig
from mispair.protocols import Run
from mispair.retrieval_module import RetrievalModule
from mispair.types import PairBatch, Split

HEADS = 4  # of the refiners, as released


class IN2RConfig(CoTeachingConfig):
    """As released, but for the number of neighbours, which a caller sets there."""

    name: Literal["in2r"] = "in2r"
    warmup_epochs: int = Field(default=1, ge=1)
    noisy_from: int = Field(default=0, ge=0)
    intra_margin: float = Field(default=0.3, gt=0.0)  # of the triplets within a side
    queue: int = Field(default=65_536, ge=1)  # pairs at most; never more than are trusted above the mean
    neighbours: int = Field(default=8, ge=1)
    temperature: float = Field(default=0.05, gt=0.0)
    prototype_weight: float = Field(default=0.5, ge=0.0)


class Queue:
    """Vectors of the pairs most recently trusted, images beside texts: the oldest give way. Letters: n new, D width."""

    def __init__(self) -> None:
        self.size = 0
        self.images = self.texts = torch.empty(0, 0)
        self._filled = self._head = 0

    def __len__(self) -> int:
        return self._filled

    @property
    def vectors(self) -> tuple[Tensor, Tensor]:
        """Images and texts, (q, D) each, in no order."""
        return self.images[: self._filled], self.texts[: self._filled]

    def resize(self, size: int) -> None:
        """Room for `size` pairs; the newest stay."""
        if size == self.size:
            return
        kept = torch.arange(self._head - min(self._filled, size), self._head) % max(self.size, 1)
        images, texts = self.images[kept], self.texts[kept]
        self.size, self.images, self.texts, self._filled, self._head = size, images[:0], texts[:0], 0, 0
        self.push(images, texts)

    def push(self, images: Tensor, texts: Tensor) -> None:
        """Add vectors of pairs (n, D), (n, D); where there is no room the oldest leave."""
        images, texts = (side.detach().float()[-self.size :] if self.size else side[:0] for side in (images, texts))
        if not len(images):
            return
        if not len(self.images):
            self.images, self.texts = (images.new_zeros(self.size, images.shape[1]) for _ in range(2))
        slots = torch.arange(self._head, self._head + len(images), device=images.device) % self.size
        self.images[slots], self.texts[slots] = images, texts
        self._head = (self._head + len(images)) % self.size
        self._filled = min(self._filled + len(images), self.size)

    def state(self) -> dict[str, Any]:
        vectors = {"images": self.images.clone(), "texts": self.texts.clone()}
        return {"size": self.size, "filled": self._filled, "head": self._head, **vectors}

    def restore(self, state: dict[str, Any], device: torch.device) -> None:
        self.size, self._filled, self._head = state["size"], state["filled"], state["head"]
        self.images, self.texts = (state[side].clone().to(device) for side in ("images", "texts"))


class Refiner(nn.Module):
    """Neighbours look at each other, then their mean is taken: self-attention beside a direct path, normalised."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, HEADS if width % HEADS == 0 else 1, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(0.1)

    def forward(self, neighbours: Tensor) -> Tensor:
        """(n, k, D) -> prototypes (n, D) of unit length."""
        seen = self.attention(neighbours, neighbours, neighbours, need_weights=False)[0]
        return normalize(self.norm(neighbours + self.dropout(seen)).float().mean(1), dim=-1)


class IN2R(CoTeaching[IN2RConfig]):
    """Prototypes from neighbours of the same modality."""

    Config = IN2RConfig
    about = About(
        name="in2r",
        paper="Intra-Modal Neighbors Never Lie: Rectifying Inter-Modal Noisy Correspondence",
        venue="ICML",
        year=2026,
        url="https://arxiv.org/abs/2606.04061",
        networks=2,
        cost=3.0,
        mismatched="is drawn to a prototype: what the trusted neighbours of its image, or of its text, are paired with",
    )

    def __init__(self, config: IN2RConfig, make_network: Callable[[], RetrievalModule], batch_size: int) -> None:
        super().__init__(config, make_network, batch_size)
        first, second = self.networks.values()
        second.load_state_dict(first.state_dict())  # vectors of one mean something to the other
        self.refiners = {
            name: nn.ModuleDict({side: Refiner(net.width) for side in ("texts", "images")})
            for name, net in self.networks.items()
        }
        self.modules = {**self.modules, **{f"refiner_{name}": both for name, both in self.refiners.items()}}
        self.queues = {name: Queue() for name in self.networks}

    def _stepper(self, student: str, teacher: str, split: Split) -> Callable[..., None]:
        trust = 1 - split.p_mismatch
        worthy = ~split.mismatched & (trust >= trust[split.matched_ids].mean())
        self.queues[student].resize(min(self.config.queue, int(np.count_nonzero(worthy))))
        return partial(self._step, student, self.queues[teacher], torch.from_numpy(worthy).to(self.device))

    def _step(
        self,
        student: str,
        memory: Queue,
        worthy: Tensor,
        run: Run,
        matched: PairBatch,
        mismatched: PairBatch | None = None,
    ) -> None:
        losses, images, texts = self._believed(run, self.networks[student], matched)
        chosen = to_host(worthy[matched.pair_ids]).nonzero()[:, 0].to(images.device)
        self.queues[student].push(images[chosen], texts[chosen])
        total = weighed(run, losses, matched.pair_ids).sum()
        if mismatched is not None and len(memory) >= self.config.neighbours:
            doubtful = self._prototypes(run, student, memory, mismatched)
            run.log(mismatched_loss=doubtful.mean())
            total = total + weighed(run, doubtful, mismatched.pair_ids).mean()
        run.log(loss=losses.mean())
        run.minimize(student, total)

    def _believed(self, run: Run, net: RetrievalModule, batch: PairBatch) -> tuple[Tensor, Tensor, Tensor]:
        """Losses (n,) of pairs believed, and their vectors (n, D) on both sides."""
        images, texts = run.encode(net, batch)
        losses = triplet(scores_of(net, images, texts, sparse=True), self.config.margin)
        first = mean_vectors(images), mean_vectors(texts)
        again = (mean_vectors(side) for side in run.encode(net, batch))  # other parts drop out
        for one, other in zip(first, again, strict=True):
            losses = losses + triplet((one @ other.T).float(), self.config.intra_margin)
        return losses, *first

    def _prototypes(self, run: Run, student: str, memory: Queue, batch: PairBatch) -> Tensor:
        """Losses (n,) of doubtful pairs, each side against the prototypes; before it a step of what makes these."""
        config, refiners = self.config, self.refiners[student]
        images, texts = (mean_vectors(side).float() for side in run.encode(self.networks[student], batch))
        seen, read = memory.vectors
        near = {"texts": read[self._nearest(images, seen)], "images": seen[self._nearest(texts, read)]}

        def losses(images: Tensor, texts: Tensor, meant: dict[str, Tensor]) -> Tensor:
            by_image = symmetric_cross_entropy(images @ meant["texts"].T, config.temperature)
            by_text = symmetric_cross_entropy(meant["images"] @ texts.T, config.temperature)
            return 2 * config.prototype_weight * (by_image + by_text)  # ½ of the sum is inside

        taught = losses(images.detach(), texts.detach(), self._refined(refiners, near))
        run.minimize(f"refiner_{student}", weighed(run, taught, batch.pair_ids).mean())
        with torch.no_grad():
            prototypes = self._refined(refiners, near)
        return losses(images, texts, prototypes)

    @staticmethod
    def _refined(refiners: nn.ModuleDict, near: dict[str, Tensor]) -> dict[str, Tensor]:
        return {side: refiners[side](vectors) for side, vectors in near.items()}

    def _nearest(self, items: Tensor, others: Tensor) -> Tensor:
        """Places in the queue of the k nearest, (n, D), (q, D) -> (n, k)."""
        return (items.detach() @ others.T).topk(self.config.neighbours).indices

    def state(self) -> dict[str, Any]:
        return {name: queue.state() for name, queue in self.queues.items()}

    def restore(self, state: dict[str, Any]) -> None:
        for student, _ in TURNS:
            self.queues[student].restore(state[student], self.device)
