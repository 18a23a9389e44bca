"""What a machine sees of a picture: boxes found in the pixels, and a description of the pixels in each box.

Nothing here knows the scene. Objects are found as patches that differ from the border's colour; the rest of the
regions are boxes at random places, as a detector too gives many that show nothing in particular.
Letters: n pictures, R regions, S side of a picture, G side of the sampled crop.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mispair.data.scenes.draw import SIDE

REGIONS = 8
WIDTH = 96
_CROP = 18  # G
_MOST_FOUND = 6
_SMALLEST = 5  # cells of the coarse picture a patch must cover
_HUES = 12

Pictures = NDArray[np.uint8]
Floats = NDArray[np.float32]


def describe(pictures: Pictures, rngs: list[np.random.Generator], noise: float) -> Floats:
    """Region features of pictures (n, S, S, 3) -> (n, REGIONS, WIDTH) float32; one generator per picture."""
    ground = _ground(pictures)
    boxes = find_boxes(pictures[:, ::2, ::2], ground, rngs)
    raw = _measure(pictures, ground, boxes)
    features: Floats = ((raw - _CENTRE) @ _mixing(raw.shape[-1])).astype(np.float32)
    for k, rng in enumerate(rngs):
        features[k] += noise * rng.standard_normal((REGIONS, WIDTH), np.float32)
    return features


def find_boxes(coarse: Pictures, ground: Floats, rngs: list[np.random.Generator]) -> NDArray[np.float32]:
    """(n, REGIONS, 4) boxes top, left, bottom, right in pixels, in drawn order; `coarse` has every second pixel."""
    differs = _highest(np.abs(coarse - ground[:, None, None])) > 45.0
    labels = _components(differs)
    boxes = np.empty((len(coarse), REGIONS, 4), np.float32)
    for k, rng in enumerate(rngs):
        found = _component_boxes(labels[k])
        side = rng.uniform(14, 40, (REGIONS, 2))
        corner = rng.uniform(0, 1, (REGIONS, 2)) * (SIDE - side)
        own = np.concatenate([corner, corner + side], 1)
        own[: len(found)] = found + rng.uniform(-1.5, 1.5, (len(found), 4))
        boxes[k] = np.clip(own[rng.permutation(REGIONS)], 0, SIDE)
    return boxes


def _highest(colours: Floats) -> Floats:
    """The largest of the three channels; numpy's own max over so short an axis is ten times slower."""
    highest: Floats = np.maximum(np.maximum(colours[..., 0], colours[..., 1]), colours[..., 2])
    return highest


def _ground(pictures: Pictures) -> Floats:
    """The median colour of each picture's border, (n, 3)."""
    border = np.concatenate(
        [pictures[:, :2].reshape(len(pictures), -1, 3), pictures[:, -2:].reshape(len(pictures), -1, 3)], 1
    )
    return np.median(border, axis=1).astype(np.float32)


def _components(mask: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Numbers of connected patches, (n, s, s), 0 outside: each cell takes the largest number around until none changes."""
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
    """Boxes of the largest patches in pixels, (k, 4)."""
    y, x = np.nonzero(labels)
    if not len(y):
        return np.empty((0, 4))
    _, which, counts = np.unique(labels[y, x], return_inverse=True, return_counts=True)
    kept = [k for k in np.argsort(-counts, kind="stable")[:_MOST_FOUND] if counts[k] >= _SMALLEST]
    boxes = np.empty((len(kept), 4))
    for slot, k in enumerate(kept):
        rows, columns = y[which == k], x[which == k]
        boxes[slot] = rows.min(), columns.min(), rows.max() + 1, columns.max() + 1
    return boxes * 2.0


def _measure(pictures: Pictures, ground: Floats, boxes: Floats) -> Floats:
    """Colour, outline, texture and place of each box, (n, R, raw width)."""
    n = len(pictures)
    steps = (np.arange(_CROP, dtype=np.float32) + 0.5) / _CROP
    top, left, bottom, right = np.moveaxis(boxes, -1, 0)
    y = np.clip(top[..., None] + steps * (bottom - top)[..., None], 0, SIDE - 1).astype(np.int64)
    x = np.clip(left[..., None] + steps * (right - left)[..., None], 0, SIDE - 1).astype(np.int64)
    crops = pictures[np.arange(n)[:, None, None, None], y[..., :, None], x[..., None, :]].astype(np.float32)
    differs = np.clip(_highest(np.abs(crops - ground[:, None, None, None])) / 60.0, 0.0, 1.0)
    weight = np.where(differs > 0.6, differs, 0.0)
    total = weight.sum((2, 3), keepdims=True) + 1.0
    outline = differs.reshape(n, REGIONS, 6, _CROP // 6, 6, _CROP // 6).mean((3, 5)).reshape(n, REGIONS, 36)
    colour = (weight.reshape(n, REGIONS, 1, -1) @ crops.reshape(n, REGIONS, -1, 3))[:, :, 0] / total[..., 0] / 128.0
    around = np.broadcast_to(ground[:, None] / 128.0, colour.shape)
    parts = [outline * 2.0, colour * 2.0, around, _hues(crops, weight, total), _texture(crops, weight), _place(boxes)]
    return np.concatenate(parts, -1).astype(np.float32)


def _hues(crops: Floats, weight: Floats, total: Floats) -> Floats:
    """How much of the object has each of 12 hues, by saturation."""
    red, green, blue = np.moveaxis(crops, -1, 0)
    high, low = _highest(crops), np.minimum(np.minimum(red, green), blue)
    spread = high - low + 1e-3
    hue = np.where(
        high == red,
        (green - blue) / spread % 6,
        np.where(high == green, (blue - red) / spread + 2, (red - green) / spread + 4),
    )
    centres = np.arange(_HUES, dtype=np.float32) * (6.0 / _HUES)
    saturated = weight * spread / (high + 1.0)
    away = np.abs(hue[..., None] - centres)
    near = np.clip(1.0 - np.minimum(away, 6.0 - away) / 0.75, 0.0, None)
    near = near.reshape(*near.shape[:2], -1, _HUES)
    weighed = saturated.reshape(*near.shape[:2], 1, -1) @ near
    result: Floats = weighed[:, :, 0] / total[..., 0] * 3.0
    return result


def _texture(crops: Floats, weight: Floats) -> Floats:
    """Brightness changes inside the object, down and across, at four distances."""
    bright = _highest(crops)
    level = (bright * weight).sum((2, 3), keepdims=True) / (weight.sum((2, 3), keepdims=True) + 1.0) + 20.0
    bright = bright / level
    inside = weight > 0
    changes = []
    for gap in (1, 2, 3, 5):
        for axis in (2, 3):
            a, b = [slice(None)] * 4, [slice(None)] * 4
            a[axis], b[axis] = slice(gap, None), slice(None, -gap)
            both = inside[tuple(a)] & inside[tuple(b)]
            change = np.abs(bright[tuple(a)] - bright[tuple(b)]) * both
            changes.append(change.sum((2, 3)) / (both.sum((2, 3)) + 4.0))
    return np.stack(changes, -1).astype(np.float32) * 4.0


def _place(boxes: Floats) -> Floats:
    """Where the box lies and how large it is, as nearness to fixed points."""
    top, left, bottom, right = np.moveaxis(boxes / SIDE, -1, 0)
    centres = np.array([1 / 6, 3 / 6, 5 / 6], np.float32)
    down = np.exp(-(((((top + bottom) / 2)[..., None] - centres) / 0.15) ** 2))
    across = np.exp(-(((((left + right) / 2)[..., None] - centres) / 0.15) ** 2))
    extent = np.sqrt(np.clip((bottom - top) * (right - left), 0.0, None))[..., None]
    sizes = np.exp(-(((extent - np.array([0.13, 0.2, 0.28, 0.4], np.float32)) / 0.05) ** 2))
    return np.concatenate([down, across, sizes], -1)


def _mixing(width: int) -> Floats:
    """A fixed rotation: as in learned features, no single number means a colour or a shape."""
    basis = np.linalg.qr(np.random.default_rng(20_240_305).standard_normal((WIDTH, WIDTH)))[0]
    return basis[:width].astype(np.float32)


_CENTRE = 0.5
