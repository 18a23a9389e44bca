"""Pairs whose towers learn, as vectors of those towers before their first step: what no pair had a part in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import numpy as np
from torch import Tensor

from mispair.data import PairData
from mispair.data.features import FeatureStore
from mispair.data.prepared_pictures import PreparedPictures
from mispair.evaluation_mode import evaluation_mode
from mispair.models.dual import Dual
from mispair.retrieval.scoring import read_batches
from mispair.workflows.assemble import Training

_BATCH = 64


def with_frozen_vectors(training: Training) -> PairData:
    """The training pairs; where pictures are decoded batch by batch, both sides as the encoder's vectors instead.

    One pass over pictures and texts through fresh towers.
    """
    data, network = training.data, training.make() if isinstance(training.data.images, PreparedPictures) else None
    if not isinstance(network, Dual) or network.towers is None:
        return data
    network.to(training.trainer.engine.device)
    tell = training.trainer.journal.tell
    pictures = read_batches(
        network, data.image_batch, np.arange(len(data.images)), _BATCH, partial(tell, "pictures through frozen towers")
    )
    texts = read_batches(
        network, data.text_batch, np.arange(len(data.texts)), _BATCH, partial(tell, "texts through frozen towers")
    )
    with evaluation_mode(network):
        images = _stored(network.towers.see(pixels[:, 0]) for pixels, _ in pictures)
        captions = _stored(network.towers.read(pieces, mask) for pieces, mask in texts)
    return replace(data, images=images, texts=captions, joint=images if network.towers.inputs.joint else None)


def _stored(vectors: Iterable[Tensor]) -> FeatureStore:
    return FeatureStore(np.concatenate([block.float().cpu().numpy() for block in vectors]))
