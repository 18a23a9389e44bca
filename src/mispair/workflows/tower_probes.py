"""What an export is held against: for towers pictures and captions of several sizes, and what the run makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mispair.encoders.tower_inputs import TowerInputs
from mispair.errors import InputError
from mispair.models.dual import Dual
from mispair.retrieval.scoring import joined_vectors

EQUAL = 1e-5  # how far a vector of the exported model may be from the network's
CAPTIONS = ("a dog runs", "two cats sleep on the red sofa", "the beach", "dog " * 200)
_SIZES = ((64, 48), (48, 64), (50, 50), (90, 30))  # height and width


def pictures() -> list[Any]:
    """As many as there are captions."""
    from PIL import Image

    rng = np.random.default_rng(0)
    return [Image.fromarray(rng.integers(0, 255, (*size, 3), dtype=np.uint8)) for size in _SIZES]


@torch.no_grad()
def own_vectors(models: Sequence[Dual], inputs: TowerInputs) -> list[NDArray[np.float32]]:
    """Of the pictures and of the captions, by the networks; products are the mean of their cosines."""
    pixels = torch.from_numpy(np.stack([inputs.pictures.prepare(one).reshape(1, -1) for one in pictures()]))
    rows = [torch.tensor(ids) for ids in inputs.number(CAPTIONS)]
    ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    mask = torch.arange(ids.shape[1]) < torch.tensor([len(row) for row in rows])[:, None]
    real = torch.ones(len(pixels), 1, dtype=torch.bool)
    seen = [model.pool_images(model.encode_images(pixels, real)) for model in models]
    read = [model.pool_texts(model.encode_texts(ids, mask)) for model in models]
    return [joined_vectors(side) for side in (seen, read)]


def refuse_unlike(expected: NDArray[np.float32], theirs: NDArray[np.float32], side: str, by: str) -> None:
    """Raise InputError where what was exported gives other vectors than the run."""
    apart = float(np.abs(expected - theirs).max()) if expected.shape == theirs.shape else float("inf")
    if not apart <= EQUAL:
        raise InputError(f"{by} gives {side} vectors that are {apart:.1g} off, more than {EQUAL:g}: not exported")
