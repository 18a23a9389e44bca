"""Pictures of one colour, captions that name it, and an encoder that puts both into one space."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from mispair.encoders.own import FunctionEncoder

COLOURS = {
    "red": (220, 30, 30), "green": (30, 200, 40), "blue": (30, 40, 220), "yellow": (220, 210, 40),
    "purple": (150, 40, 190), "white": (240, 240, 240), "black": (20, 20, 20), "orange": (240, 140, 20),
}  # fmt: skip
NAMES = tuple(COLOURS)


def colour_encoder(**options: object) -> FunctionEncoder:
    """Mean colours of pictures; of a text the colour it names. Both in one space."""
    return FunctionEncoder("colours", "1", images=_mean, texts=_named, joint=True, side=8)


def _mean(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    return pixels.reshape(len(pixels), -1, 3).mean(1).astype(np.float32) / 255


def _named(texts: list[str]) -> NDArray[np.float32]:
    grey = (128, 128, 128)
    named = [next((COLOURS[word] for word in text.split() if word in COLOURS), grey) for text in texts]
    return np.array(named, np.float32) / 255


def colour_picture(name: str, seed: int) -> bytes:
    rng = np.random.default_rng(seed)
    values = np.clip(np.array(COLOURS[name]) + rng.normal(0, 12, (12, 16, 3)), 0, 255).astype(np.uint8)
    out = io.BytesIO()
    Image.fromarray(values).save(out, "PNG")
    return out.getvalue()


def write_colours(folder: Path, count: int = 96, wrong: int = 8) -> Path:
    """photos/ and pairs.csv with `count` pairs, of which the first `wrong` name another colour."""
    (folder / "photos").mkdir(parents=True)
    lines = ["filepath,title"]
    for k in range(count):
        (folder / f"photos/{k:03d}.png").write_bytes(colour_picture(NAMES[k % 8], k))
        said = NAMES[(k + 3) % 8] if k < wrong else NAMES[k % 8]
        lines.append(f"{k:03d}.png,a {said} square number {k % 5}")
    (folder / "pairs.csv").write_text("\n".join(lines) + "\n")
    return folder / "pairs.csv"
