"""Region features: each box described in visual words learned from other pictures, mixed, and made noisy.

Nothing here knows the scene. As in a learned network, the features answer to kinds of outline and texture that
occur, and no single number means a colour or a shape.
Letters: n pictures, R regions, K words, d measurements.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mispair.data.scenes.appearance import measure
from mispair.data.scenes.boxes import REGIONS, Floats, PictureArrays, find_boxes, ground_colour
from mispair.data.scenes.draw import render
from mispair.data.scenes.world import Dice, sample

WIDTH = 96
_OUTLINES, _TEXTURES = 40, 16
_PICTURES_TO_LEARN_FROM = 160
_SEED = 20_240_305


def describe(pictures: PictureArrays, rngs: list[np.random.Generator], noise: float) -> Floats:
    """Pictures (n, 96, 96, 3) -> features (n, REGIONS, WIDTH) float32; one generator per picture."""
    raw = _raw(pictures, rngs)
    features: Floats = (raw @ _mixing(raw.shape[-1])).astype(np.float32)
    for k, rng in enumerate(rngs):
        features[k] += noise * rng.standard_normal((REGIONS, WIDTH), np.float32)
    return features


@dataclass(frozen=True, eq=False)
class Words:
    """K typical values of one measurement, found by k-means; a region is described by how near it is to each."""

    centres: Floats  # (K, d)
    reach: float  # squared distance at which a word hardly answers

    def answer(self, values: Floats) -> Floats:
        """(n, R, d) -> (n, R, K): how near each word is; the answers of one box sum to at most 1."""
        near = np.exp(-_distances(values.reshape(-1, values.shape[-1]), self.centres) / self.reach)
        near /= near.sum(1, keepdims=True) + 1e-2
        answers: Floats = near.reshape(*values.shape[:2], -1).astype(np.float32)
        return answers


@lru_cache(maxsize=1)
def _words() -> tuple[Words, Words]:
    """Words for outlines and textures, from pictures of no split."""
    draws = [Dice(np.random.default_rng((_SEED, k))) for k in range(_PICTURES_TO_LEARN_FROM)]
    pictures = np.stack([render(sample(draw), draw) for draw in draws])
    ground = ground_colour(pictures)
    appearance = measure(pictures, ground, find_boxes(pictures, ground, [draw.rng for draw in draws]))
    rng = np.random.default_rng(_SEED)
    return _learn(appearance.outline, _OUTLINES, rng), _learn(appearance.texture, _TEXTURES, rng)


def _learn(values: Floats, count: int, rng: np.random.Generator) -> Words:
    """k-means, started from far-apart values."""
    values = values.reshape(-1, values.shape[-1])
    centres = values[:1]
    for _ in range(count - 1):
        nearest = _distances(values, centres).min(1)
        centres = np.concatenate([centres, values[[rng.choice(len(values), p=nearest / nearest.sum())]]])
    for _ in range(12):
        own = _distances(values, centres).argmin(1)
        centres = np.stack([values[own == k].mean(0) if (own == k).any() else centres[k] for k in range(count)])
    return Words(centres, float(_distances(values, centres).min(1).mean()))


def _distances(values: Floats, centres: Floats) -> Floats:
    """Squared distances, (n, K); by differences, so that equal inputs give exactly equal results."""
    result: Floats = np.stack([((values - centre) ** 2).sum(1) for centre in centres], 1)
    return result


def _raw(pictures: PictureArrays, rngs: list[np.random.Generator]) -> Floats:
    ground = ground_colour(pictures)
    boxes = find_boxes(pictures, ground, rngs)
    appearance = measure(pictures, ground, boxes)
    outlines, textures = _words()
    parts = [
        outlines.answer(appearance.outline) * 1.5,
        textures.answer(appearance.texture),
        appearance.colour * 3.0,
        appearance.place,
    ]
    return np.concatenate(parts, -1)


def _mixing(width: int) -> Floats:
    """The first `width` rows of a fixed rotation, which hides the measurements in the features."""
    basis = np.linalg.qr(np.random.default_rng(_SEED).standard_normal((WIDTH, WIDTH)))[0]
    return basis[:width].astype(np.float32)
