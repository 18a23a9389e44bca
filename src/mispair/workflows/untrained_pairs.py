"""Pairs whose towers learn, as vectors of those towers before their first step: what no pair had a part in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mispair.data import PairData
from mispair.data.features import FeatureStore
from mispair.data.prepared_pictures import PreparedPictures
from mispair.data.untrained import untrained_vectors
from mispair.distributed import share_columns
from mispair.evaluation_mode import evaluation_mode
from mispair.models.dual import Dual
from mispair.progress import Progress, Tell
from mispair.retrieval.scoring import Read, device_of, read_batches
from mispair.retrieval_module import RetrievalModule
from mispair.types import Untrained

_BATCH = 64


class UntrainedPairs:
    """The training pairs before anything was trained; of towers that learn it is kept, since it costs a pass.

    Args:
        make: one more fresh network.
        device: where that computes.
    """

    def __init__(self, data: PairData, make: Callable[[], RetrievalModule], device: torch.device, tell: Tell) -> None:
        self._data, self._make, self._device, self._tell = data, make, device, tell
        self._kept: Untrained | None = None

    def __call__(self) -> Untrained | None:
        """None where a network of one's own reads pictures. Inside `sharing` every process sees its part of them."""
        if not isinstance(self._data.images, PreparedPictures):
            return untrained_vectors(self._data)
        if self._kept is None:
            with torch.random.fork_rng(devices=[]):  # a fresh network draws numbers, which the training must not miss
                network = self._make()
            if isinstance(network, Dual) and network.towers is not None:
                self._kept = untrained_vectors(self._through(network.to(self._device)))
        return self._kept

    def _through(self, network: Dual) -> PairData:
        """The pairs with both sides as vectors of the towers."""
        data, towers = self._data, network.towers
        with evaluation_mode(network):
            images = _stored(
                network, data.image_batch, len(data.images), lambda pixels, _: towers.see(pixels[:, 0]),
                partial(self._tell, "pictures through towers that have learned nothing"),
            )  # fmt: skip
            texts = _stored(
                network, data.text_batch, len(data.texts), towers.read,
                partial(self._tell, "texts through towers that have learned nothing"),
            )  # fmt: skip
        return replace(data, images=images, texts=texts, joint=images if towers.inputs.joint else None)


def _stored(network: Dual, read: Read, count: int, tower: Callable[..., Any], progress: Progress) -> FeatureStore:
    """Vectors of `count` items, each by the process whose part it is."""
    share = share_columns(torch.arange(count, device=device_of(network)))
    rows = np.arange(count) if share is None else share.mine.cpu().numpy()
    blocks: list[Tensor] = [tower(*batch).float() for batch in read_batches(network, read, rows, _BATCH, progress)]
    vectors = torch.cat(blocks) if share is None else share.whole(torch.cat(blocks))
    return FeatureStore(vectors.cpu().numpy())
