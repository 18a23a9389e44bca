"""Pictures from strangers, decoded and encoded again: nothing of the file itself reaches the page."""

from __future__ import annotations

import base64
import io
import stat
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_BYTES = 64 << 20
MOST_PIXELS = 80_000_000  # above every camera's; a small file can claim far more and fill the memory
_FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP")


def thumbnail(source: bytes | Path, side: int) -> str:
    """A data URI of the picture at most `side` pixels wide and high; "" where it cannot be shown."""
    from PIL import Image, ImageOps

    try:
        if isinstance(source, Path):
            status = source.stat()
            if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:  # opening a pipe could wait for ever
                return ""
            source = source.read_bytes()
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # Pillow only warns of a decompression bomb below twice its limit
            with Image.open(io.BytesIO(source), formats=_FORMATS) as picture:
                if picture.width * picture.height > MOST_PIXELS:
                    return ""
                picture.draft("RGB", (2 * side, 2 * side))
                small = picture.convert(
                    "RGBA" if "A" in picture.getbands() or "transparency" in picture.info else "RGB"
                )
                small.thumbnail((side, side))
                return _encoded(ImageOps.exif_transpose(small))
    except Exception:  # noqa: BLE001  a decoder can fail in any way; the page then shows a grey tile
        return ""


def _encoded(picture: Image) -> str:
    if picture.mode == "RGBA":  # on the page's grey
        ground = picture.copy()
        ground.paste((230, 228, 222, 255), (0, 0, *picture.size))
        ground.alpha_composite(picture)
        picture = ground.convert("RGB")
    picture.info.clear()  # some releases of Pillow copy the profile of the file along
    out = io.BytesIO()
    picture.save(out, "WEBP", quality=72, method=4)
    return "data:image/webp;base64," + base64.b64encode(out.getvalue()).decode()
