"""The queue: past mismatched batches that rematching sees again (L2RM, Appendix, limitation 2).

A past item is encoded anew in every step, or kept as it was encoded when its batch came: cheaper, without gradient, and
the older the further from what the network would say now.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from mispair.protocols import Run
from mispair.types import Encoded, PairBatch


@dataclass(frozen=True, slots=True)
class Anew:
    """A past batch that is encoded again whenever it is seen."""

    pairs: PairBatch

    @property
    def ids(self) -> Tensor:
        return self.pairs.pair_ids

    def to(self, device: torch.device) -> Anew:
        return self if self.ids.device == device else Anew(self.pairs.to(device))

    def images(self, run: Run, net: Any) -> Encoded:
        return run.encode_images(net, self.pairs)

    def texts(self, run: Run, net: Any) -> Encoded:
        return run.encode_texts(net, self.pairs)

    def tensors(self) -> dict[str, Tensor]:
        return {name: getattr(self.pairs, name) for name in self.pairs.__slots__}


@dataclass(frozen=True, slots=True)
class AsItWas:
    """A past batch as it was encoded when it came."""

    ids: Tensor  # (B,)
    seen: Encoded
    read: Encoded

    def to(self, device: torch.device) -> AsItWas:
        if self.ids.device == device:
            return self
        moved = (Encoded(side.values.to(device), side.mask.to(device)) for side in (self.seen, self.read))
        return AsItWas(self.ids.to(device), *moved)

    def images(self, run: Run, net: Any) -> Encoded:
        return self.seen

    def texts(self, run: Run, net: Any) -> Encoded:
        return self.read

    def tensors(self) -> dict[str, Tensor]:
        images, texts = self.seen, self.read
        masks = {"images_mask": images.mask, "texts_mask": texts.mask}
        return {"pair_ids": self.ids, "images": images.values, "texts": texts.values, **masks}


class Queue:
    """The last `length` batches; only their images are seen again, or their texts too."""

    def __init__(self, length: int, sides: Literal["images", "both"], features: Literal["fresh", "stale"]) -> None:
        self.length, self.sides, self.features = length, sides, features
        self.past: list[Anew | AsItWas] = []  # newest first

    def widen(
        self, run: Run, net: Any, batch: PairBatch, images: Encoded, texts: Encoded
    ) -> tuple[Encoded, Encoded, Tensor, Tensor]:
        """A batch as encoded and, after it, what the queue holds: images, texts, and the pairs they come from."""
        stale = self.features == "stale"
        newest = AsItWas(batch.pair_ids, images.detached(), texts.detached()) if stale else Anew(batch)
        image_ids = text_ids = batch.pair_ids
        for past in (past.to(image_ids.device) for past in self.past):
            fresh = ~torch.isin(past.ids, image_ids)  # a short stream brings the same pair again
            images = images.joined(past.images(run, net).take(fresh))
            image_ids = torch.cat([image_ids, past.ids[fresh]])
            if self.sides == "both":
                texts, text_ids = texts.joined(past.texts(run, net).take(fresh)), image_ids
        self.past = [newest, *self.past][: self.length]
        return images, texts, image_ids, text_ids

    def state(self) -> list[dict[str, Tensor]]:
        """Empty with several processes: each holds its own share of a batch, and the saved file is one for all."""
        shared = any(isinstance(past, Anew) and len(past.pairs.images) < len(past.ids) for past in self.past)
        return [] if shared else [past.tensors() for past in self.past]

    def restore(self, state: list[dict[str, Tensor]]) -> None:
        self.past = [self._past(tensors) for tensors in state]

    def _past(self, tensors: dict[str, Tensor]) -> Anew | AsItWas:
        """The batch, on the host: it moves when it is seen."""
        if self.features == "fresh":
            return Anew(PairBatch(**tensors))
        sides = (Encoded(tensors[side], tensors[f"{side}_mask"]) for side in ("images", "texts"))
        return AsItWas(tensors["pair_ids"], *sides)
