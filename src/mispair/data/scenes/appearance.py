"""What the pixels in a box look like: outline, texture, colour, place.

Letters: n pictures, R regions, S side of a picture, G side of the sampled crop.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mispair.data.scenes.boxes import Floats, PictureArrays, highest
from mispair.data.scenes.draw import SIDE

_CROP = 18  # G
_GRID = 6  # cells of the outline, each way
_HUES = 12


@dataclass(frozen=True, eq=False)
class Appearance:
    """Measurements of every box, (n, R, ...)."""

    outline: Floats  # (n, R, 36) how much of each cell differs from the background
    texture: Floats  # (n, R, 8) brightness changes inside the object
    colour: Floats  # (n, R, 18) hues, mean colour, background colour
    place: Floats  # (n, R, 10) where the box lies and how large it is


def measure(pictures: PictureArrays, ground: Floats, boxes: Floats) -> Appearance:
    """pictures (n, S, S, 3), ground (n, 3), boxes (n, R, 4)."""
    crops = _crop(pictures, boxes)
    differs = np.clip(highest(np.abs(crops - ground[:, None, None, None])) / 60.0, 0.0, 1.0)
    weight = np.where(differs > 0.6, differs, np.float32(0.0))
    n, regions = boxes.shape[:2]
    cells = differs.reshape(n, regions, _GRID, _CROP // _GRID, _GRID, _CROP // _GRID)
    outline = cells.mean((3, 5)).reshape(n, regions, _GRID * _GRID)
    total = weight.sum((2, 3))[..., None] + 1.0
    flat = weight.reshape(n, regions, 1, -1)
    mean = (flat @ crops.reshape(n, regions, -1, 3))[:, :, 0] / total / 256.0
    around = np.broadcast_to(ground[:, None] / 256.0, mean.shape)
    colour = np.concatenate([_hues(crops, weight) / total, mean, around], -1)
    return Appearance(outline, _texture(crops, weight), colour.astype(np.float32), _place(boxes))


def _crop(pictures: PictureArrays, boxes: Floats) -> Floats:
    """G x G pixels of each box, (n, R, G, G, 3)."""
    steps = (np.arange(_CROP, dtype=np.float32) + 0.5) / _CROP
    top, left, bottom, right = np.moveaxis(boxes, -1, 0)
    y = np.clip(top[..., None] + steps * (bottom - top)[..., None], 0, SIDE - 1).astype(np.int64)
    x = np.clip(left[..., None] + steps * (right - left)[..., None], 0, SIDE - 1).astype(np.int64)
    rows = np.arange(len(pictures))[:, None, None, None]
    crops: Floats = pictures[rows, y[..., :, None], x[..., None, :]].astype(np.float32)
    return crops


def _hues(crops: Floats, weight: Floats) -> NDArray[np.floating]:
    """How much of the object has each of 12 hues, by saturation, (n, R, 12), not yet divided by its area."""
    red, green, blue = np.moveaxis(crops, -1, 0)
    high, low = highest(crops), np.minimum(np.minimum(red, green), blue)
    spread = high - low + 1e-3
    past_red, past_green, past_blue = (green - blue) / spread % 6, (blue - red) / spread + 2, (red - green) / spread + 4
    hue = np.where(high == red, past_red, np.where(high == green, past_green, past_blue))
    away = np.abs(hue[..., None] - np.arange(_HUES, dtype=np.float32) * (6.0 / _HUES))
    near = np.clip(1.0 - np.minimum(away, 6.0 - away) / 0.75, 0.0, None)
    near = near.reshape(*near.shape[:2], -1, _HUES)
    saturated = weight * spread / (high + 1.0)
    weighed: NDArray[np.floating] = (saturated.reshape(*near.shape[:2], 1, -1) @ near)[:, :, 0]
    return weighed


def _texture(crops: Floats, weight: Floats) -> Floats:
    """Mean change of brightness inside the object, down and across, at four distances."""
    bright = highest(crops)
    level = (bright * weight).sum((2, 3), keepdims=True) / (weight.sum((2, 3), keepdims=True) + 1.0) + 20.0
    bright = bright / level
    inside = weight > 0
    changes = []
    for gap in (1, 2, 3, 5):
        for far, near in (
            (np.s_[:, :, gap:], np.s_[:, :, :-gap]),
            (np.s_[:, :, :, gap:], np.s_[:, :, :, :-gap]),
        ):
            both = inside[far] & inside[near]
            change = np.abs(bright[far] - bright[near]) * both
            changes.append(change.sum((2, 3)) / (both.sum((2, 3)) + 4.0))
    return np.stack(changes, -1).astype(np.float32)


def _place(boxes: Floats) -> Floats:
    """Nearness of the box to fixed places and sizes."""
    top, left, bottom, right = np.moveaxis(boxes / SIDE, -1, 0)
    thirds = np.array([1 / 6, 3 / 6, 5 / 6], np.float32)
    down = np.exp(-(((((top + bottom) / 2)[..., None] - thirds) / 0.15) ** 2))
    across = np.exp(-(((((left + right) / 2)[..., None] - thirds) / 0.15) ** 2))
    extent = np.sqrt(np.clip((bottom - top) * (right - left), 0.0, None))[..., None]
    sizes = np.exp(-(((extent - np.array([0.13, 0.2, 0.28, 0.4], np.float32)) / 0.05) ** 2))
    return np.concatenate([down, across, sizes], -1).astype(np.float32)
