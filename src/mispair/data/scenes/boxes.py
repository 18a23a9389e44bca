"""Where a machine looks: patches that differ from the border's colour, and boxes at random places.

Nothing here knows the scene. A detector too gives many boxes that show nothing in particular.
Letters: n pictures, R regions, S side of a picture, s side of the coarse picture.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mispair.data.scenes.draw import SIDE

REGIONS = 6
_SMALLEST = 5  # cells of the coarse picture a patch must cover

PictureArrays = NDArray[np.uint8]
Floats = NDArray[np.float32]


def find_boxes(pictures: PictureArrays, ground: Floats, rngs: list[np.random.Generator]) -> Floats:
    """Boxes (n, REGIONS, 4) as top, left, bottom, right in pixels, in drawn order; one generator per picture."""
    coarse = pictures[:, ::2, ::2]
    labels = _components(highest(np.abs(coarse - ground[:, None, None])) > 45.0)
    boxes = np.empty((len(coarse), REGIONS, 4), np.float32)
    for k, rng in enumerate(rngs):
        objects = _component_boxes(labels[k])
        side = rng.uniform(14, 40, (REGIONS, 2))
        corner = rng.uniform(0, 1, (REGIONS, 2)) * (SIDE - side)
        own = np.concatenate([corner, corner + side], 1)
        own[: len(objects)] = objects + rng.uniform(-1.5, 1.5, (len(objects), 4))
        boxes[k] = np.clip(own[rng.permutation(REGIONS)], 0, SIDE)
    return boxes


def ground_colour(pictures: PictureArrays) -> Floats:
    """The median colour of each picture's border, (n, 3)."""
    edges = [pictures[:, :2].reshape(len(pictures), -1, 3), pictures[:, -2:].reshape(len(pictures), -1, 3)]
    median: Floats = np.median(np.concatenate(edges, 1), axis=1).astype(np.float32)
    return median


def highest(colours: Floats) -> Floats:
    """The largest of the three channels; numpy's own max over so short an axis is ten times slower."""
    result: Floats = np.maximum(np.maximum(colours[..., 0], colours[..., 1]), colours[..., 2])
    return result


def _components(mask: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Numbers of connected patches, (n, s, s), 0 outside: cells take the largest number around until none changes."""
    n, height, width = mask.shape
    labels = np.zeros((n, height + 2, width + 2), np.int32)
    labels[:, 1:-1, 1:-1] = np.where(mask, np.arange(1, height * width + 1, dtype=np.int32).reshape(height, width), 0)
    inner = labels[:, 1:-1, 1:-1]
    while True:
        spread = np.maximum(labels[:, :-2, 1:-1], labels[:, 2:, 1:-1])
        np.maximum(spread, labels[:, 1:-1, :-2], out=spread)
        np.maximum(spread, labels[:, 1:-1, 2:], out=spread)
        np.maximum(spread, inner, out=spread)
        spread *= mask
        if np.array_equal(spread, inner):
            return inner
        inner[:] = spread


def _component_boxes(labels: NDArray[np.int32]) -> NDArray[np.float64]:
    """Boxes of the largest patches in pixels, (k, 4), k at most REGIONS - 1."""
    y, x = np.nonzero(labels)
    if not len(y):
        return np.empty((0, 4))
    _, which, counts = np.unique(labels[y, x], return_inverse=True, return_counts=True)
    kept = [k for k in np.argsort(-counts, kind="stable")[: REGIONS - 1] if counts[k] >= _SMALLEST]
    boxes = np.empty((len(kept), 4))
    for slot, k in enumerate(kept):
        rows, columns = y[which == k], x[which == k]
        boxes[slot] = rows.min(), columns.min(), rows.max() + 1, columns.max() + 1
    return boxes * 2.0
