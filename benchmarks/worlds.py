"""Planted worlds: embeddings of pairs whose truth is known, in many shapes. Nothing here was taken from real data.

Two generators that have nothing in common, so that what is chosen on one can be tried on the other. `gaussian`: image
and text are noisy views of one meaning. `concepts`: an image shows some things (frequent and rare ones), a caption
mentions some of them, and an encoder adds up their vectors; many captions fit many images.

Letters: I images, N pairs, d width.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Protocol = Literal["caption", "image", "shift", "similar"]
Spread = Literal["same", "gamma", "lognormal", "two"]

WIDTH = 48


@dataclass(frozen=True)
class Shape:
    """What a world is like."""

    name: str
    generator: Literal["gaussian", "concepts"] = "gaussian"
    noise: float = 1.0  # of both sides; .3 is nearly perfect, 2.5 is AUROC .6 to .7
    spread: Spread = "gamma"  # how much pairs differ in it
    topics: int = 0  # meanings lie around so many centres
    topic_share: float = 0.6  # of the variance of meanings
    decay: float = 0.5  # of the spread of the axes: the k-th has k ** -decay
    captions: int = 1  # of each image
    protocol: Protocol = "caption"
    repeated: float = 0.0  # share of the texts drawn from 50: the one that fits best
    twins: float = 0.0  # share of the images that are nearly another one
    opaque: float = 0.0  # share of the matched texts that say nothing
    natural: float = 0.0  # share of the pairs mismatched before any are exchanged
    gap: float = 1.0  # offset between the sides


@dataclass(frozen=True)
class World:
    """Row k of one side is paired with row k of the other."""

    images: Floats  # (N, d), repeated where an image has several captions
    texts: Floats  # (N, d)
    image_of: Ints  # (N,)
    captions: list[str]
    wrong: NDArray[np.bool_]  # (N,)


CHOOSING = (
    Shape("easy", noise=0.6),
    Shape("middling", noise=1.2, spread="lognormal"),
    Shape("weak", noise=2.2),
    Shape("nearly perfect", noise=0.3, spread="same"),
    Shape("five captions, image protocol", noise=1.2, captions=5, protocol="image"),
    Shape("two captions", noise=1.0, captions=2),
    Shape("topics", noise=0.8, topics=20, topic_share=0.8),
    Shape("some hard", noise=1.0, spread="two"),
    Shape("repeated captions", noise=0.9, repeated=0.2, topics=50),
    Shape("twins", noise=0.9, twins=0.2),
    Shape("shifted", noise=1.0, protocol="shift", topics=40),
    Shape("naturally noisy", noise=0.9, natural=0.1),
    Shape("says nothing", noise=0.7, opaque=0.03),
)
"""Shapes that constants may be chosen on."""

KEPT = (
    Shape("concepts, easy", "concepts", noise=0.4),
    Shape("concepts, middling", "concepts", noise=0.9),
    Shape("concepts, weak", "concepts", noise=1.8),
    Shape("concepts, five captions, image protocol", "concepts", noise=0.8, captions=5, protocol="image"),
    Shape("concepts, five captions", "concepts", noise=0.8, captions=5),
    Shape("concepts, two captions", "concepts", noise=0.6, captions=2, protocol="image"),
    Shape("concepts, repeated captions", "concepts", noise=0.6, repeated=0.2),
    Shape("concepts, shifted", "concepts", noise=0.6, protocol="shift"),
    Shape("concepts, naturally noisy", "concepts", noise=0.6, natural=0.15),
    Shape("concepts, twins", "concepts", noise=0.6, twins=0.15),
    Shape("few axes", noise=0.8, decay=1.0, spread="lognormal"),
    Shape("two kinds, few topics", noise=0.9, topics=8, topic_share=0.7, spread="two"),
    Shape("perfect", noise=0.15, spread="gamma"),
)
"""Shapes for trying: no constant of the estimator of the rate was chosen on them."""

BEYOND = (
    Shape("captions of similar images", noise=0.7, protocol="similar"),
    Shape("concepts, captions of similar images", "concepts", noise=0.5, protocol="similar"),
    Shape("a tenth says nothing", noise=0.7, opaque=0.1),
)
"""Shapes in which the rate cannot be known: mismatched pairs do not look re-paired, or matched ones do."""


def make(shape: Shape, pairs: int, rate: float, seed: int) -> World:
    """About `pairs` pairs of that shape; of them, or of their images, a share exchanged."""
    rng = np.random.default_rng(seed)
    images = pairs // shape.captions
    image_of = np.repeat(np.arange(images), shape.captions)
    seen, said, meaning = (_concepts if shape.generator == "concepts" else _gaussian)(shape, image_of, rng)
    captions = [f"text {k}" for k in range(len(image_of))]
    if shape.repeated:
        _repeat(shape, said, captions, rng)
    nothing = rng.random(len(image_of)) < shape.opaque
    said[nothing] = said[rng.permutation(len(said))[: nothing.sum()]]
    first = _exchange(replace(shape, protocol="caption"), image_of, meaning, shape.natural, rng)
    second = _exchange(shape, image_of, meaning, rate, rng)
    shown = first[second]
    wrong = image_of[shown] != image_of
    if shape.repeated:  # the same words from another image are the same caption
        wrong &= np.array([captions[k] != captions[own] for own, k in enumerate(shown)])
    gap = shape.gap * rng.normal(size=(2, WIDTH)) * said.std()
    return World(seen[image_of] + gap[0], said[shown] + gap[1], image_of, [captions[k] for k in shown], wrong)


def _gaussian(shape: Shape, image_of: Ints, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Images (I, d), texts (N, d) and meanings (I, d)."""
    count = int(image_of[-1]) + 1
    axes = np.arange(1, WIDTH + 1) ** -shape.decay
    axes /= np.sqrt((axes**2).mean())
    meaning = rng.normal(size=(count, WIDTH))
    if shape.topics:
        topic = rng.normal(size=(shape.topics, WIDTH))[rng.integers(shape.topics, size=count)]
        meaning = np.sqrt(shape.topic_share) * topic + np.sqrt(1 - shape.topic_share) * meaning
    meaning *= axes
    if shape.twins:
        copies = rng.permutation(count)[: round(shape.twins * count)]
        meaning[copies] = meaning[rng.integers(count, size=len(copies))] + 0.05 * rng.normal(size=(len(copies), WIDTH))
    sides = []
    for of in (np.arange(count), image_of):
        sides.append(
            meaning[of]
            + shape.noise * _hardness(shape.spread, len(of), rng)[:, None] * rng.normal(size=(len(of), WIDTH))
        )
    return sides[0], sides[1], meaning


def _hardness(spread: Spread, count: int, rng: np.random.Generator) -> Floats:
    """(count,) noise of every item, about 1 on average."""
    if spread == "same":
        return np.ones(count)
    if spread == "gamma":
        return rng.gamma(4.0, 0.25, count)
    if spread == "lognormal":
        return np.exp(0.5 * rng.normal(size=count))
    return np.where(rng.random(count) < 0.2, 2.0, 0.6)


def _concepts(shape: Shape, image_of: Ints, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    count, things = int(image_of[-1]) + 1, 400
    frequency = 1 / np.arange(2, things + 2)
    vectors = rng.normal(size=(things, WIDTH))
    shows = np.zeros((count, things))
    for _ in range(6):
        shows[np.arange(count), rng.choice(things, count, p=frequency / frequency.sum())] = 1
    if shape.twins:
        copies = rng.permutation(count)[: round(shape.twins * count)]
        shows[copies] = shows[rng.integers(count, size=len(copies))]
    likely = rng.random((len(image_of), things)) * shows[image_of]
    mentioned = np.argsort(-likely, 1)[:, :4]
    length = rng.integers(1, 5, len(image_of))
    mentions = np.zeros((len(image_of), things))
    for k in range(4):
        mentions[np.arange(len(image_of)), mentioned[:, k]] = (k < length) & (
            likely[np.arange(len(image_of)), mentioned[:, k]] > 0
        )
    seen, said = (shows + 0.15 * rng.random(shows.shape)) @ vectors, mentions @ vectors
    for side in (seen, said):
        side += shape.noise * side.std() * rng.normal(size=side.shape)
    return seen, said, shows @ vectors


def _repeat(shape: Shape, said: Floats, captions: list[str], rng: np.random.Generator) -> None:
    """A share of the texts becomes the one of 50 that is nearest: true, and said of many."""
    stock = said[rng.permutation(len(said))[:50]].copy()
    for k in rng.permutation(len(said))[: round(shape.repeated * len(said))].tolist():
        nearest = int((stock @ said[k] / np.linalg.norm(stock, axis=1)).argmax())
        said[k], captions[k] = stock[nearest], f"stock {nearest}"


def _exchange(shape: Shape, image_of: Ints, meaning: Floats, rate: float, rng: np.random.Generator) -> Ints:
    """(N,) which text every pair shows."""
    pairs, shown = len(image_of), np.arange(len(image_of))
    if not rate:
        return shown
    if shape.protocol == "shift":
        last = shown[pairs - round(rate * pairs) :]
        shown[last] = np.roll(last, shape.captions)
    elif shape.protocol == "image":
        images = rng.permutation(len(meaning))[: round(rate * len(meaning))]
        goes = np.arange(len(meaning))
        goes[images] = rng.permutation(images)
        shown = goes[image_of] * shape.captions + shown % shape.captions
    elif shape.protocol == "similar":
        unit = meaning / np.linalg.norm(meaning, axis=1, keepdims=True)
        chosen = rng.permutation(pairs)[: round(rate * pairs)]
        near = np.argsort(-(unit[image_of[chosen]] @ unit.T), 1)[:, 1 : max(2, len(meaning) // 50)]
        other = near[np.arange(len(chosen)), rng.integers(near.shape[1], size=len(chosen))]
        shown[chosen] = other * shape.captions
    else:
        chosen = rng.permutation(pairs)[: round(rate * pairs)]
        shown[chosen] = rng.permutation(chosen)
    return shown
