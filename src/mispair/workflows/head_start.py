"""Where the maps of separate towers start: by the given pairs, those the others vouch for first."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from mispair.data import PairData
from mispair.functional.canonical import SideMap, canonical_maps, trusted_maps
from mispair.models.dual import Dual
from mispair.retrieval_module import RetrievalModule

MOST_PAIRS = 50_000  # more say nothing new about some hundred directions
_ROWS = 1024


def started(make: Callable[[], RetrievalModule], data: PairData) -> Callable[[], RetrievalModule]:
    """The same networks, those that want a start by the training pairs with one; it is computed once."""
    maps: list[tuple[SideMap, SideMap]] = []

    def begin() -> RetrievalModule:
        network = make()
        if isinstance(network, Dual) and network.wants_start:
            if not maps:
                maps.append(_maps(data, network))
            network.start(*maps[0])
        return network

    return begin


def _maps(data: PairData, network: Dual) -> tuple[SideMap, SideMap]:
    """From a drawn part of the pairs where there are very many; weights and decisions of people count."""
    pairs = np.arange(len(data))
    if len(pairs) > MOST_PAIRS:
        pairs = np.sort(np.random.default_rng(0).permutation(len(pairs))[:MOST_PAIRS])
    blocks = [data.batch(pairs[k : k + _ROWS]) for k in range(0, len(pairs), _ROWS)]
    images = torch.cat([network.mean_vectors(block.images, block.image_mask) for block in blocks])
    texts = torch.cat([network.mean_vectors(block.texts, block.text_mask) for block in blocks])
    table = data.table
    weight = np.ones(len(pairs)) if table.weights is None else np.asarray(table.weights[pairs], np.float64)
    if table.known is not None:
        weight = np.where(table.known[pairs] == 1, 0.0, weight)
    if network.start_by == "trusted":
        return trusted_maps(images, texts, table.image_rows[pairs], weight, network.embed)[0]
    return canonical_maps(images, texts, torch.from_numpy(weight).float(), network.embed)
