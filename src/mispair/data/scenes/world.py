"""What is in a picture: one to three objects on a background, drawn from a seed.

An object is six numbers, in the order of ATTRIBUTES; a picture has nine places, row by row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SHAPES = ("circle", "square", "triangle", "diamond", "star", "cross", "ring", "crescent")
COLOURS = ("red", "orange", "yellow", "green", "turquoise", "blue", "purple", "pink")
SIZES = ("small", "medium", "large")
TEXTURES = ("plain", "striped", "dotted", "checkered")
BACKGROUNDS = ("white", "grey", "black", "sand")
ATTRIBUTES = ("shape", "colour", "size", "texture", "row", "column")
CHOICES = (len(SHAPES), len(COLOURS), len(SIZES), len(TEXTURES), 3, 3)
MOST_OBJECTS = 3
SPLITS = {"train": 1, "dev": 2, "test": 3}


@dataclass(frozen=True)
class Scene:
    """One picture's content. `objects` are tuples in the order of ATTRIBUTES."""

    objects: tuple[tuple[int, ...], ...]
    background: int


class Dice:
    """Uniform draws from one generator, fetched many at a time because fetching one is slow."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self._pool: list[float] = []

    def uniform(self) -> float:
        if not self._pool:
            self._pool = self.rng.random(256).tolist()
        return self._pool.pop()

    def below(self, n: int) -> int:
        return int(self.uniform() * n)

    def chance(self, p: float) -> bool:
        return self.uniform() < p

    def pick(self, options: tuple[str, ...]) -> str:
        return options[int(self.uniform() * len(options))]

    def some(self, n: int, of: int) -> list[int]:
        """`n` different numbers below `of`, in drawn order."""
        numbers = list(range(of))
        return [numbers.pop(self.below(len(numbers))) for _ in range(n)]


def dice(seed: int, split: str, picture: int, purpose: int) -> Dice:
    """The draws of one picture for one purpose: independent of how many other pictures there are."""
    return Dice(np.random.default_rng((seed, SPLITS[split], picture, purpose)))


def sample(draw: Dice) -> Scene:
    """A scene; no two objects stand in one place."""
    count = 1 + draw.below(MOST_OBJECTS)
    objects = []
    for place in draw.some(count, 9):
        attributes = [draw.below(n) for n in CHOICES[:4]]
        objects.append((*attributes, place // 3, place % 3))
    return Scene(tuple(objects), draw.below(len(BACKGROUNDS)))


def object_array(scenes: list[Scene]) -> NDArray[np.int8]:
    """(n, 4, 6) attributes of every object; -2 where a picture has fewer, which no claim matches."""
    array = np.full((len(scenes), MOST_OBJECTS, len(ATTRIBUTES)), -2, np.int8)
    for k, scene in enumerate(scenes):
        array[k, : len(scene.objects)] = scene.objects
    return array
