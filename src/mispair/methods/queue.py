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
class Past:
    """One batch: its pairs, or what was made of them."""

    ids: Tensor  # (B,)
    pairs: PairBatch | None  # to be encoded anew
    encoded: tuple[Encoded, Encoded] | None  # as it was

    def to(self, device: torch.device) -> Past:
        """The same batch on `device`: a restored one comes on the host."""
        if self.ids.device == device:
            return self
        moved = (
            None
            if self.encoded is None
            else tuple(Encoded(e.values.to(device), e.mask.to(device)) for e in self.encoded)
        )
        return Past(self.ids.to(device), None if self.pairs is None else self.pairs.to(device), moved)  # type: ignore[arg-type]

    def images(self, run: Run, net: Any) -> Encoded:
        return self.encoded[0] if self.encoded is not None else run.encode_images(net, self.pairs)  # type: ignore[arg-type]

    def texts(self, run: Run, net: Any) -> Encoded:
        return self.encoded[1] if self.encoded is not None else run.encode_texts(net, self.pairs)  # type: ignore[arg-type]


class Queue:
    """The last `length` batches; only their images are seen again, or their texts too."""

    def __init__(self, length: int, sides: Literal["images", "both"], features: Literal["fresh", "stale"]) -> None:
        self.length, self.sides, self.features = length, sides, features
        self.past: list[Past] = []  # newest first

    def widen(
        self, run: Run, net: Any, batch: PairBatch, images: Encoded, texts: Encoded
    ) -> tuple[Encoded, Encoded, Tensor, Tensor]:
        """A batch as encoded and, after it, what the queue holds: images, texts, and the pairs they come from."""
        encoded = images.detached(), texts.detached()
        image_ids = text_ids = batch.pair_ids
        for past in (past.to(image_ids.device) for past in self.past):
            fresh = ~torch.isin(past.ids, image_ids)  # a short stream brings the same pair again
            images = images.joined(past.images(run, net).take(fresh))
            image_ids = torch.cat([image_ids, past.ids[fresh]])
            if self.sides == "both":
                texts, text_ids = texts.joined(past.texts(run, net).take(fresh)), image_ids
        stale = self.features == "stale"
        newest = Past(batch.pair_ids, None if stale else batch, encoded if stale else None)
        self.past = [newest, *self.past][: self.length]
        return images, texts, image_ids, text_ids

    def state(self) -> list[dict[str, Tensor]]:
        """Empty with several processes: each holds its own share of a batch, and the saved file is one for all."""
        shared = any(past.pairs is not None and len(past.pairs.images) < len(past.ids) for past in self.past)
        return [] if shared else [_flat(past) for past in self.past]

    def restore(self, state: list[dict[str, Tensor]]) -> None:
        self.past = [self._past(tensors) for tensors in state]

    def _past(self, tensors: dict[str, Tensor]) -> Past:
        if self.features == "fresh":
            return Past(tensors["pair_ids"], PairBatch(**tensors), None)
        sides = (Encoded(tensors[side], tensors[f"{side}_mask"]) for side in ("images", "texts"))
        return Past(tensors["pair_ids"], None, (next(sides), next(sides)))


def _flat(past: Past) -> dict[str, Tensor]:
    if past.pairs is not None:
        return {name: getattr(past.pairs, name) for name in past.pairs.__slots__}
    assert past.encoded is not None
    images, texts = past.encoded
    masks = {"images_mask": images.mask, "texts_mask": texts.mask}
    return {"pair_ids": past.ids, "images": images.values, "texts": texts.values, **masks}
