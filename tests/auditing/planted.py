"""Planted embeddings: pairs whose truth is known, in spaces where the plain cosine alone does not suffice."""

from __future__ import annotations

import numpy as np


def planted(pairs=997, width=32, rate=0.3, seed=0, topics=40, noise=0.6, gap=1.0, twisted=0.0):
    """Images and texts around topics, each side with noise of its own and an offset; a `rate` share re-paired.

    In a `twisted` share of the dimensions the two sides do not agree on the axes: only neighbours can tell there.

    -> image embeddings, text embeddings, mismatched (n,), belongs (n,): the row of the text of each image.
    """
    rng = np.random.default_rng(seed)
    topic = rng.normal(size=(topics, width))[rng.integers(topics, size=pairs)]
    meaning = topic + 0.7 * rng.normal(size=(pairs, width))
    images = meaning + noise * rng.normal(size=(pairs, width)) + gap * rng.normal(size=width)
    texts = meaning + noise * rng.normal(size=(pairs, width)) + gap * rng.normal(size=width)
    lost = int(twisted * width)
    texts[:, :lost] = texts[:, :lost] @ np.linalg.qr(rng.normal(size=(lost, lost)))[0]
    chosen = rng.choice(pairs, int(rate * pairs), replace=False)
    shown = np.arange(pairs)
    shown[chosen] = np.roll(chosen, 1)
    belongs = np.empty(pairs, np.int64)
    belongs[shown] = np.arange(pairs)
    return images.astype(np.float32), texts[shown].astype(np.float32), shown != np.arange(pairs), belongs
