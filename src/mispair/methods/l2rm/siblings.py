"""Siblings: pairs that show the same image. When a whole image was mismatched, its texts still describe one picture.

Whether they do is never assumed: `agreement` measures it, and the method that uses siblings asks first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mispair.device_to_host import to_host
from mispair.functional.contrastive_losses import info_nce
from mispair.methods.base import mean_vectors, weighed
from mispair.protocols import Companions, Run
from mispair.retrieval_module import RetrievalModule
from mispair.types import Encoded, PairBatch

Ids = NDArray[np.int64]
AGREED = 0.7


class Siblings:
    """Who shows the same image as whom. image_of (N,)."""

    def __init__(self, image_of: Ids) -> None:
        self._order = np.argsort(image_of, kind="stable")
        _, rows, self._counts = np.unique(image_of, return_inverse=True, return_counts=True)
        self._starts = np.concatenate([[0], self._counts.cumsum()[:-1]])
        self._rows = rows
        self._places = np.empty(len(image_of), np.int64)
        self._places[self._order] = np.arange(len(image_of)) - self._starts[rows[self._order]]

    @property
    def any(self) -> bool:
        """Whether any two pairs show the same image."""
        return bool((self._counts > 1).any())

    def partners(self, ids: Ids, turn: int) -> Ids:
        """For each pair one of its siblings, another one every turn; a pair that is alone gets itself."""
        rows = self._rows[ids]
        count = self._counts[rows]
        step = 1 + turn % np.maximum(count - 1, 1)
        return np.asarray(self._order[self._starts[rows] + (self._places[ids] + step) % count])


class SiblingLoss:
    """Texts shown with one image against each other, and whether they are used at all.

    when: "always", "never", or "auto": from the second epoch on only while texts that share an image were nearer to
    each other than to other texts in the epoch before, in more than `AGREED` of the comparisons.
    """

    def __init__(
        self,
        when: Literal["auto", "always", "never"],
        weight: float,
        temperature: float = 0.05,
        half_weight: float = 0.0,
    ) -> None:
        self.when, self.weight, self.temperature, self.half_weight = when, weight, temperature, half_weight
        self.half_share = 1.0  # of half_weight in use: all of it unless the pairs are known to teach well
        self.trusted = False
        self._seen = torch.zeros(2)  # sum of the agreements of this epoch's steps, and their number
        self._siblings: Siblings | None = None
        self._turn = 0

    @property
    def none(self) -> bool:
        """Whether every pair shows an image of its own."""
        assert self._siblings is not None, "begin comes first"
        return not self._siblings.any

    def begin(self, image_of: Ids, epoch: int) -> None:
        """Before an epoch: decide from what the last one showed."""
        if self._siblings is None:
            self._siblings = Siblings(image_of)
            if epoch == 0:
                self.trusted = (
                    self.when != "never" and self._siblings.any and (self.when == "always" or self.weight > 0)
                )
        total, steps = to_host(self._seen).tolist()
        if self.when == "auto" and steps:
            self.trusted = total / steps > AGREED
        self._seen, self._turn = torch.zeros(2), epoch

    def streams(self, *names: str) -> dict[str, Companions]:
        """For each named stream a companion stream NAME_siblings; none when siblings are not used."""
        if not self.trusted or not self.weight:
            return {}
        return {f"{name}_siblings": self._following(name) for name in names}

    def loss(
        self, run: Run, net: RetrievalModule, batch: PairBatch, texts: Encoded, siblings: PairBatch | None
    ) -> Tensor:
        """Weighted InfoNCE of the texts of a batch with their siblings, (); where no text has any, of its halves."""
        if siblings is None:
            return self._halves(run, net, batch) if self.none else texts.values.new_zeros(())
        scores = mean_vectors(texts) @ mean_vectors(run.encode_texts(net, siblings)).T
        self.observe(scores)
        losses = weighed(run, info_nce(scores.float(), self.temperature), batch.pair_ids)
        return self.weight * weighed(run, losses, siblings.pair_ids).mean()  # two texts are as sure as both

    def _halves(self, run: Run, net: RetrievalModule, batch: PairBatch) -> Tensor:
        """One half of each text's words against the other: what texts alone teach, whatever image they stand with."""
        if not self.half_weight * self.half_share or batch.text_mask.shape[1] < 2:  # one vector per text has no halves
            return batch.text_mask.new_zeros((), dtype=torch.float32)
        halves = [mean_vectors(run.encode_texts(net, half)) for half in run.halves(batch)]
        scores = (halves[0] @ halves[1].T).float()
        return self.half_share * self.half_weight * 0.5 * info_nce(scores, self.temperature).mean()

    @torch.no_grad()
    def observe(self, scores: Tensor) -> None:
        """Texts against their siblings (diagonal) and those of others, (n, n)."""
        self._seen = self._seen.to(scores.device) + torch.stack([agreement(scores), scores.new_ones(())])

    def state(self) -> dict[str, Any]:
        return {"trusted": self.trusted, "seen": self._seen.clone()}

    def restore(self, state: dict[str, Any]) -> None:
        self.trusted, self._seen = state["trusted"], state["seen"]

    def _following(self, stream: str) -> Companions:
        siblings, turn = self._siblings, self._turn
        assert siblings is not None, "begin comes first"

        def choose(chosen: Mapping[str, Ids]) -> Ids:
            return siblings.partners(chosen[stream], turn)

        return Companions(choose, "texts")


def agreement(scores: Tensor) -> Tensor:
    """How often a text is nearer to its sibling (diagonal) than to another: ½ by chance, 1 always. (n, n) -> ()."""
    n = len(scores)
    others = ~torch.eye(n, dtype=torch.bool, device=scores.device)
    return ((scores.diagonal()[:, None] > scores) & others).sum() / (n * (n - 1))
