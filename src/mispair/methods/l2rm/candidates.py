"""Candidates: the images and texts that rematching compares. The batch itself, a queue of past ones, or the nearest.

`Candidates` is the paper's choice, the mismatched batch itself, and the protocol of the others: `QueueCandidates` adds
past batches, `NearestCandidates` looks through the whole mismatched set (L2RM, Appendix, limitation 2, names the batch
as the limit of rematching).

Letters: B texts of a batch, q images compared with them, N pairs, M mismatched texts or groups of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mispair.device_to_host import to_host
from mispair.methods.l2rm.config import CandidatesConfig
from mispair.methods.l2rm.nearest import NearestImages, given_cosines
from mispair.protocols import Companions, Run
from mispair.retrieval_module import RetrievalModule
from mispair.types import Encoded, PairBatch, Split

Ids = NDArray[np.int64]
VECTORS = ("image", "text")  # columns of a survey too large to save


@dataclass(frozen=True, slots=True)
class Compared:
    """Encoded images and texts to be matched with each other, and the pairs they come from."""

    images: Encoded  # q
    texts: Encoded  # B, or more with a queue of texts
    image_ids: Tensor  # (q,)
    text_ids: Tensor  # as many as texts
    own_texts: Encoded  # (B) those of the batch itself


@dataclass(frozen=True, slots=True)
class Prospects:
    """How well given images suit their texts, and how well the best other image does."""

    given: NDArray[np.float64]  # (N,) by pair id
    best: NDArray[np.float64]  # (M,) of the mismatched


class Candidates:
    """The images and texts of the mismatched batch itself."""

    def survey(self, net: RetrievalModule, images: Encoded, texts: Encoded) -> dict[str, Tensor]:
        """What the pass over all pairs before an epoch must keep for `prepare`, by column; see `VECTORS`."""
        return {}

    def prepare(
        self, columns: Mapping[str, NDArray[Any]], split: Split, image_of: Ids, together: bool
    ) -> Prospects | None:
        """Before an epoch, from the columns of the survey (N,): "given" and "best" scores, and what `survey` kept.

        together: texts shown with one image count as one group. None where a killed run goes on inside an epoch and
        the columns are not there; the saved state brings back what came of them.
        """
        return Prospects(columns["given"], columns["best"][split.mismatched])

    def streams(self) -> dict[str, Companions]:
        """Batches that must come along with the mismatched one."""
        return {}

    def gather(self, run: Run, net: RetrievalModule, batch: PairBatch, nearest: PairBatch | None) -> Compared:
        """What the texts of a mismatched batch are compared with; `nearest` is the stream of that name, if any."""
        texts = run.encode_texts(net, batch)
        images = run.encode_images(net, batch)
        return Compared(images, texts, batch.pair_ids, batch.pair_ids, texts)

    def similarity(self, image_ids: Tensor, text_ids: Tensor) -> Tensor | None:
        """Cosines (q, B) of images with whole groups of texts, where groups are known."""
        return None

    def around(self, ids: Ids) -> Ids:
        """Pairs whose images are compared with the texts of the pairs `ids`, (B,) -> (q,)."""
        return ids

    def state(self, inside: bool) -> dict[str, Any]:
        """What must be saved; `inside` an epoch that rematches, also what its beginning prepared."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        pass


class NearestCandidates(Candidates):
    """Of all mismatched images those nearest to the texts, by vectors from the beginning of the epoch."""

    def __init__(self, size: int, per_text: int, batch_size: int) -> None:
        self.size, self.per_text, self.batch_size = size, per_text, batch_size
        self.pool: NearestImages | None = None

    def survey(self, net: RetrievalModule, images: Encoded, texts: Encoded) -> dict[str, Tensor]:
        return {"image": net.pool_images(images), "text": net.pool_texts(texts)}

    def prepare(
        self, columns: Mapping[str, NDArray[Any]], split: Split, image_of: Ids, together: bool
    ) -> Prospects | None:
        if "image" not in columns:
            return None
        self.pool = None
        mismatched = split.mismatched_ids
        if len(mismatched) < self.batch_size:
            return super().prepare(columns, split, image_of, together)
        vectors = columns["image"], columns["text"]
        self.pool = NearestImages.gather(mismatched, image_of, *vectors, together, self.per_text)
        return Prospects(given_cosines(image_of, *vectors, together), self.pool.best())

    def streams(self) -> dict[str, Companions]:
        return {"nearest": Companions(lambda chosen: self.around(chosen["mismatched"]), "images")}

    def gather(self, run: Run, net: RetrievalModule, batch: PairBatch, nearest: PairBatch | None) -> Compared:
        assert nearest is not None
        texts = run.encode_texts(net, batch)
        return Compared(run.encode_images(net, nearest), texts, nearest.pair_ids, batch.pair_ids, texts)

    def similarity(self, image_ids: Tensor, text_ids: Tensor) -> Tensor | None:
        return None if self.pool is None else self.pool.similarity(image_ids, text_ids)

    def around(self, ids: Ids) -> Ids:
        return ids if self.pool is None else self.pool.around(ids, self.size)

    def state(self, inside: bool) -> dict[str, Any]:
        return {"pool": self.pool.state()} if self.pool is not None and inside else {}

    def restore(self, state: dict[str, Any]) -> None:
        self.pool = NearestImages.restored(state["pool"]) if "pool" in state else None


@dataclass(frozen=True, slots=True)
class FreshBatch:
    """A past batch that is encoded again whenever it is compared."""

    pairs: PairBatch

    @property
    def ids(self) -> Tensor:
        return self.pairs.pair_ids

    def to(self, device: torch.device) -> FreshBatch:
        return self if self.ids.device == device else FreshBatch(self.pairs.to(device))

    def images(self, run: Run, net: RetrievalModule) -> Encoded:
        return run.encode_images(net, self.pairs)

    def texts(self, run: Run, net: RetrievalModule) -> Encoded:
        return run.encode_texts(net, self.pairs)

    def tensors(self) -> dict[str, Tensor]:
        return {name: getattr(self.pairs, name) for name in self.pairs.__slots__}


@dataclass(frozen=True, slots=True)
class StaleBatch:
    """A past batch as it was encoded when it came: cheaper, without gradient, and the older the further off."""

    ids: Tensor  # (B,)
    encoded_images: Encoded
    encoded_texts: Encoded

    def to(self, device: torch.device) -> StaleBatch:
        if self.ids.device == device:
            return self
        sides = (self.encoded_images, self.encoded_texts)
        return StaleBatch(self.ids.to(device), *(Encoded(s.values.to(device), s.mask.to(device)) for s in sides))

    def images(self, run: Run, net: RetrievalModule) -> Encoded:
        return self.encoded_images

    def texts(self, run: Run, net: RetrievalModule) -> Encoded:
        return self.encoded_texts

    def tensors(self) -> dict[str, Tensor]:
        images, texts = self.encoded_images, self.encoded_texts
        masks = {"images_mask": images.mask, "texts_mask": texts.mask}
        return {"pair_ids": self.ids, "images": images.values, "texts": texts.values, **masks}


class QueueCandidates(Candidates):
    """The batch and the last `length` ones before it; of those only the images, or their texts too."""

    def __init__(self, length: int, sides: Literal["images", "both"], features: Literal["fresh", "stale"]) -> None:
        self.length, self.sides, self.features = length, sides, features
        self.past: list[FreshBatch | StaleBatch] = []  # newest first

    def gather(self, run: Run, net: RetrievalModule, batch: PairBatch, nearest: PairBatch | None) -> Compared:
        return self.widen(run, net, batch, super().gather(run, net, batch, None))

    def widen(self, run: Run, net: RetrievalModule, batch: PairBatch, own: Compared) -> Compared:
        """A batch as encoded and, after it, what the queue holds; then the batch joins the queue."""
        images, texts, image_ids, text_ids = own.images, own.texts, own.image_ids, own.text_ids
        stale = self.features == "stale"
        newest = StaleBatch(image_ids, images.detached(), texts.detached()) if stale else FreshBatch(batch)
        for past in (past.to(image_ids.device) for past in self.past):
            # A short stream brings the same pair again; how many are new must be known to make room for them.
            new = to_host(~torch.isin(past.ids, image_ids)).nonzero()[:, 0].to(image_ids.device)
            images = images.joined(past.images(run, net).take(new))
            image_ids = torch.cat([image_ids, past.ids[new]])
            if self.sides == "both":
                texts, text_ids = texts.joined(past.texts(run, net).take(new)), image_ids
        self.past = [newest, *self.past][: self.length]
        return Compared(images, texts, image_ids, text_ids, own.own_texts)

    def state(self, inside: bool) -> dict[str, Any]:
        """Empty with several processes: each holds its own share of a batch, and the saved file is one for all."""
        shared = any(isinstance(past, FreshBatch) and len(past.pairs.images) < len(past.ids) for past in self.past)
        return {"queue": [] if shared else [past.tensors() for past in self.past]}

    def restore(self, state: dict[str, Any]) -> None:
        self.past = [self._batch(tensors) for tensors in state["queue"]]

    def _batch(self, tensors: dict[str, Tensor]) -> FreshBatch | StaleBatch:
        """The batch, on the host: it moves when it is compared."""
        if self.features == "fresh":
            return FreshBatch(PairBatch(**tensors))
        sides = (Encoded(tensors[side], tensors[f"{side}_mask"]) for side in ("images", "texts"))
        return StaleBatch(tensors["pair_ids"], *sides)


def make_candidates(config: CandidatesConfig, batch_size: int) -> Candidates:
    """The candidates a configuration asks for."""
    if config.kind == "nearest":
        return NearestCandidates(config.size, config.per_text, batch_size)
    if config.kind == "queue":
        past = max(0, -(-config.size // batch_size) - 1)  # batches beside the present one that hold `size` images
        return QueueCandidates(past, config.queue_sides, config.queue_features)
    return Candidates()
