"""Planted pairs as the vectors of a data set, some with several captions per image and a caption on many images."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mispair.data.features import FeatureStore
from mispair.scale.vectors import PairVectors, StoredSide
from tests.auditing.planted import planted


def vectors(pairs=3001, *, per_image=1, crowded=0.0, seed=0, width=32, rate=0.3):
    """-> data, mismatched (n,), belongs (n,). `crowded`: the share of pairs that show one caption, and its vector."""
    a, b, wrong, belongs = planted(pairs, width=width, rate=rate, seed=seed)
    images = a.reshape(-1, per_image, width).mean(1) if per_image > 1 else a
    captions = [f"caption {k}" for k in range(pairs)]
    if crowded:
        shown = np.random.default_rng(seed).permutation(pairs)[: int(crowded * pairs)]
        b[shown] = b[shown[0]]
        for k in shown.tolist():
            captions[k] = "Image not found"
    image_of = None if per_image == 1 else np.repeat(np.arange(pairs // per_image), per_image)
    sides = StoredSide("images", FeatureStore(images)), StoredSide("texts", FeatureStore(b))
    return PairVectors(*sides, image_of, captions if crowded else None), wrong, belongs


def write_arrays(folder: Path, pairs=3001, seed=0):
    a, b, wrong, belongs = planted(pairs, seed=seed)
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "a.npy", a)
    np.save(folder / "b.npy", b)
    return (folder / "a.npy", folder / "b.npy"), wrong, belongs
