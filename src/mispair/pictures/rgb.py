"""A picture of any mode as RGB, on white where it is transparent, part by part: all of it at once would be held in
every shape it goes through, of the most pixels allowed 0.5 GB each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

    Box = tuple[int, int, int, int]

_SIDE = 2048  # of a part; every factor divides it


def as_rgb(picture: Image, factor: int = 1) -> Image:
    """The loaded picture as RGB, its sides divided by `factor`, a power of two: each pixel the mean of a square."""
    from PIL import Image

    if picture.mode == "RGB" and "transparency" not in picture.info and factor == 1:
        return picture
    convert = _conversion(picture)
    if max(picture.size) <= _SIDE:
        return convert(picture).reduce(factor) if factor > 1 else convert(picture)
    made = Image.new("RGB", (-(-picture.width // factor), -(-picture.height // factor)))
    for box in _parts(picture):
        part = convert(picture.crop(box))
        made.paste(part.reduce(factor) if factor > 1 else part, (box[0] // factor, box[1] // factor))
    return made


def _parts(picture: Image) -> Iterator[Box]:
    width, height = picture.size
    for top in range(0, height, _SIDE):
        for left in range(0, width, _SIDE):
            yield left, top, min(left + _SIDE, width), min(top + _SIDE, height)


def _conversion(picture: Image) -> Callable[[Image], Image]:
    """What turns a part of `picture` into RGB."""
    if picture.mode.startswith("I") or picture.mode == "F":
        full = _full_scale(picture)
        return lambda part: _eight_bits(part, full)
    if picture.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in picture.info:
        return _on_white
    return lambda part: part.convert("RGB")


def _on_white(part: Image) -> Image:
    from PIL import Image

    layer = part.convert("RGBA")
    ground = Image.new("RGBA", layer.size, (255, 255, 255, 255))
    return Image.alpha_composite(ground, layer).convert("RGB")


def _full_scale(picture: Image) -> float:
    """The value that is white in a picture of wide grey values."""
    peak = max(float(_values(picture.crop(box)).max(initial=0.0)) for box in _parts(picture))
    if picture.mode.startswith("I;16") or 255.0 < peak <= 65535.0:
        return 65535.0
    return 1.0 if picture.mode == "F" and peak <= 1.0 else max(peak, 255.0)


def _eight_bits(part: Image, full: float) -> Image:
    """Wide grey values scaled to 0..255: Pillow's own conversion would cut everything above 255 to white."""
    import numpy as np
    from PIL import Image

    grey: NDArray[Any] = np.clip(np.rint(_values(part) * (255.0 / full)), 0, 255).astype(np.uint8)
    return Image.fromarray(grey).convert("RGB")


def _values(part: Image) -> NDArray[np.float32]:
    import numpy as np

    return np.nan_to_num(np.asarray(part).astype(np.float32), posinf=0.0, neginf=0.0)
