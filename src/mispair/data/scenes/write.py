"""The embedded world as files: a precomputed folder like any other, and its pictures."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from mispair.data.config import ScenesConfig
from mispair.data.scenes.build import make_scenes, split_sizes


def write_scenes(folder: str | os.PathLike[str], config: ScenesConfig | None = None) -> Path:
    """Write {split}_ims.npy, _caps.txt, _ids.txt and pictures/; for dev and test {split}_truth.npy, (n, 5n) bool."""
    config = config or ScenesConfig()
    root = Path(folder)
    (root / "pictures").mkdir(parents=True, exist_ok=True)
    for split in split_sizes(config):
        world = make_scenes(config, split)
        np.save(root / f"{split}_ims.npy", world.features, allow_pickle=False)
        (root / f"{split}_caps.txt").write_text("".join(f"{text}\n" for text in world.captions), encoding="utf-8")
        (root / f"{split}_ids.txt").write_text("".join(f"{name}\n" for name in world.ids), encoding="utf-8")
        if split != "train":
            np.save(root / f"{split}_truth.npy", world.truth(), allow_pickle=False)
        for k, name in enumerate(world.ids):
            (root / "pictures" / name).write_bytes(world.png(k))
    return root
