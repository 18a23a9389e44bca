"""Tiny pictures, and tars of them."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from PIL import Image


def picture(seed: int = 0, kind: str = "PNG", size: tuple[int, int] = (9, 7)) -> bytes:
    """The file of a small picture; another one for every seed."""
    values = np.random.default_rng(seed).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(values).save(out, kind)
    return out.getvalue()


def write_pictures(folder: Path, names: list[str]) -> Path:
    """Picture k under names[k]."""
    for k, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture(k))
    return folder


def write_tar(path: Path, members: Mapping[str, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path
