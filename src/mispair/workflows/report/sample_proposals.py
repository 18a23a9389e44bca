"""Proposals for a run that nobody audited: one masked partial transport over a sample of its mismatched pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mispair.data import PairData
from mispair.functional.transport import partial_transport
from mispair.models.one_vector import OneVectorBackbone
from mispair.retrieval.scoring import encode_images, encode_texts, score_grid
from mispair.workflows.trained_run import TrainedRun

# How many scores a page may ask for: a cosine is cheap, comparing words with regions is not.
_COSINES, _CELLS = 1_200_000, 100_000
MASS, ENTROPY = 0.5, 0.02


@dataclass(frozen=True)
class Proposal:
    """Another caption for the image of a pair."""

    pair: int
    proposed: int  # the pair that holds it
    weight: float  # share of what the image moved
    gain: float  # its score less the score of the given pair


def propose_from_sample(run: TrainedRun, data: PairData, flagged: NDArray[np.int64]) -> list[Proposal]:
    """For images of the flagged pairs, where most of an image's mass moved at all."""
    cosines = all(isinstance(model, OneVectorBackbone) for model in run.models)
    pairs = _sample(data, flagged, _COSINES if cosines else _CELLS)
    images, row = np.unique(data.table.image_rows[pairs], return_inverse=True)
    if len(images) < 2:
        return []
    scores = _scores(run, data, images, data.table.text_rows[pairs])
    given = torch.zeros_like(scores, dtype=torch.bool)
    given[torch.from_numpy(row), torch.arange(len(pairs))] = True
    plan = partial_transport(1 - scores.double(), MASS, ENTROPY, given).plan
    moved = plan.sum(1)
    order = plan.argsort(dim=1, descending=True)
    asked = [0] * len(images)  # pairs of each image that have had their proposal: the next one gets another caption
    proposals = []
    for k, pair in enumerate(pairs.tolist()):
        mine = int(row[k])
        best = int(order[mine, asked[mine]])
        gain = float(scores[mine, best] - scores[mine, k])
        if gain > 0 and not given[mine, best] and float(moved[mine]) * len(images) >= MASS:
            asked[mine] += 1
            proposals.append(Proposal(pair, int(pairs[best]), float(plan[mine, best] / moved[mine]), gain))
    return proposals


def _sample(data: PairData, flagged: NDArray[np.int64], cells: int) -> NDArray[np.int64]:
    """All flagged pairs of as many images as the cells allow, evenly spaced over the data."""
    images = np.unique(data.table.image_rows[flagged])
    per_image = len(flagged) / max(len(images), 1)
    most = max(2, int((cells / max(per_image, 1.0)) ** 0.5))
    if len(images) > most:
        images = images[np.linspace(0, len(images) - 1, most).round().astype(np.int64)]
    return flagged[np.isin(data.table.image_rows[flagged], images)]


def _scores(run: TrainedRun, data: PairData, images: NDArray[np.int64], texts: NDArray[np.int64]) -> Tensor:
    blocks_of = 256
    shown, said = [], []
    for model in run.models:
        cut = [data.image_batch(images[k : k + blocks_of]) for k in range(0, len(images), blocks_of)]
        shown.append(encode_images(model, cut))
        cut = [data.text_batch(texts[k : k + blocks_of]) for k in range(0, len(texts), blocks_of)]
        said.append(encode_texts(model, cut))
    return score_grid(run.models, shown, said)
