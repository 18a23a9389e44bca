"""Rematching: a cost taught on pairs known to match, and partial transport without the given pairs (Sec. 4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mispair.evaluation_mode import evaluation_mode
from mispair.functional.transport import partial_transport
from mispair.methods.base import scores_of
from mispair.methods.l2rm.candidates import Candidates, Compared, Prospects
from mispair.methods.l2rm.config import L2RMConfig
from mispair.methods.l2rm.costs import TransportCost
from mispair.methods.l2rm.siblings import SiblingLoss
from mispair.protocols import Run
from mispair.retrieval_module import RetrievalModule
from mispair.types import Alignment, Encoded, PairBatch, Split

Ids = NDArray[np.int64]


class Rematching:
    """From scores to a refined alignment; also the method's `mispair.protocols.Rematcher`."""

    def __init__(
        self,
        config: L2RMConfig,
        net: RetrievalModule,
        cost: TransportCost,
        sources: Candidates,
        siblings: SiblingLoss,
        batch_size: int,
    ) -> None:
        self.config, self.net, self.cost, self.sources, self.siblings = config, net, cost, sources, siblings
        self.batch_size = batch_size
        self.forbid, self.mass = True, 0.1
        self._shown: Tensor | None = None  # (N,) the image each pair shows

    def begin(self, split: Split, apart: bool, columns: Mapping[str, NDArray[Any]], image_of: Ids) -> None:
        """Before an epoch: the candidates, whether given pairs are forbidden, and how much of a batch to rematch.

        apart: whether matched and mismatched pairs can be told apart.
        """
        forbid = self.config.transport.forbid_given
        self.forbid = forbid == "always" or (forbid == "auto" and apart)
        prospects = self.sources.prepare(columns, split, image_of, self.siblings.trusted)
        if prospects is not None:
            self.mass = self._mass(split, prospects)

    def _mass(self, split: Split, prospects: Prospects) -> float:
        mass = self.config.transport.mass
        if mass != "auto":
            return mass
        if not len(prospects.best):
            return 0.1
        # A text is worth moving when the best image it could get suits it as well as matched ones suit theirs.
        usual = np.median(prospects.given[~split.mismatched])
        share = float((prospects.best >= usual).mean()) * float(split.p_mismatch[split.mismatched_ids].mean())
        return min(max(share, 0.05), 0.5)

    def teach(self, run: Run, images: Encoded, texts: Encoded, others: Encoded) -> Tensor:
        """Loss of the cost, (): hide a few matched images among mismatched ones; their captions are known (Eq. 6)."""
        places = min(self.batch_size, len(others))
        drawn = int(torch.randint(1, max(2, self.batch_size // 10 + 1), (), generator=run.rng))
        count = min(places, len(texts), drawn)  # few may be trusted
        keys = torch.randperm(len(texts), generator=run.rng)[:count].to(texts.mask.device)
        slots = torch.randperm(places, generator=run.rng)[:count].to(texts.mask.device)
        with evaluation_mode(self.net):  # also when one image is all there is to score
            among = torch.arange(places, device=slots.device)
            among[slots] = len(others) + keys
            hidden = others.detached().joined(images.detached()).take(among)
            if self.cost.by_row:
                hidden, slots = hidden.take(slots), torch.arange(count)
            scores = scores_of(self.net, hidden, texts.detached())
        return self.cost.teach(scores, slots.to(scores.device), keys)

    @torch.no_grad()
    def plan(self, run: Run, scores: Tensor, compared: Compared) -> Alignment:
        """The refined alignment (q, n): partial transport without the given pairs (Eq. 7-9)."""
        config = self.config.transport
        # siblings together know better than one text alone
        similar = self.sources.similarity(compared.image_ids, compared.text_ids) if self.siblings.trusted else None
        cost = self.transport_cost(scores, compared.images, compared.texts) if similar is None else self.cost(similar)
        # One image may take one caption, however many images there are.
        room = scores.new_full((len(scores),), 1 / min(scores.shape)) if len(scores) > scores.shape[1] else None
        return partial_transport(
            cost, self.mass, config.entropy, self._given(run, compared), room,
            entropy_on=config.entropy_on, stop=config.stop, validate=False,
        )  # fmt: skip

    def transport_cost(self, scores: Tensor, images: Encoded, texts: Encoded) -> Tensor:
        """What matching each image with each text costs, from scores (q, n), or from pooled vectors: (q, n)."""
        if self.config.cost.kind == "cosine":
            with evaluation_mode(self.net):
                scores = self.net.pool_images(images) @ self.net.pool_texts(texts).T
        cost: Tensor = self.cost(scores.detach().float())
        return cost

    def _given(self, run: Run, compared: Compared) -> Tensor | None:
        """Cells whose image is the one its text is shown with (the mask of Eq. 8), (q, n) bool; None: allowed."""
        if not self.forbid:
            return None
        device = compared.text_ids.device
        if self._shown is None or self._shown.device != device:  # once, not in every step
            self._shown = torch.from_numpy(run.image_of).to(device)
        return self._shown[compared.image_ids][:, None] == self._shown[compared.text_ids][None, :]

    def candidates(self, ids: Ids) -> Ids:
        """Pairs whose images are compared with the texts of the pairs `ids`."""
        return self.sources.around(ids)

    @torch.no_grad()
    def rematch(self, run: Run, images: PairBatch, texts: PairBatch) -> Alignment:
        """The refined alignment of the images of one batch and the texts of the other; for looking at."""
        encoded = run.encode_images(self.net, images), run.encode_texts(self.net, texts)
        compared = Compared(*encoded, images.pair_ids, texts.pair_ids, encoded[1])
        return self.plan(run, scores_of(self.net, *encoded), compared)

    def state(self) -> dict[str, Any]:
        return {"forbid": self.forbid, "mass": self.mass}

    def restore(self, state: dict[str, Any]) -> None:
        self.forbid, self.mass = state["forbid"], state["mass"]
