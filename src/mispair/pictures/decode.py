"""Bytes of an untrusted picture -> an upright RGB picture, or a short reason why there is none.

Nothing in here raises because of what a file holds: every way a file can be wrong becomes a `Broken`.
"""

from __future__ import annotations

import ctypes
import io
import os
import stat
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from mispair.pictures.rgb import as_rgb

if TYPE_CHECKING:
    from PIL.Image import Image, Transpose

MOST_BYTES = 256 << 20
MOST_PIXELS = (
    120_000_000  # above nearly every camera's; a file of a few kilobytes can claim far more and fill the memory
)
_MANY_PIXELS = 30_000_000  # 120 MB as Pillow holds them
_COPIES = {"WEBP": 4, "AVIF": 2}  # what their decoders hold at once, as pictures of 4 bytes a pixel
_LARGE = threading.Lock()  # held by the thread that decodes a picture of more
FORMATS = {  # as Pillow calls them -> how their files end
    "JPEG": (".jpg", ".jpeg", ".jfif"), "PNG": (".png",), "WEBP": (".webp",), "GIF": (".gif",), "BMP": (".bmp",),
    "TIFF": (".tif", ".tiff"), "PPM": (".ppm",), "AVIF": (".avif",),
}  # fmt: skip
UNREADABLE = (".heic", ".heif")  # pictures too, which cannot be read: that is said of each
_HEIC = (b"heic", b"heix", b"hevc", b"heim", b"heis", b"mif1", b"msf1")
_ORIENTATION = 0x0112  # the EXIF tag; its values 2 to 8 say how to turn the picture upright


@dataclass(frozen=True, slots=True)
class Broken:
    """A picture that cannot be used, and why, in a few words."""

    reason: str


def read_picture(path: str | os.PathLike[str]) -> bytes | Broken:
    """The bytes of an ordinary file of reasonable size; opening a pipe or a device could wait for ever."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            return Broken("not an ordinary file")
        if status.st_size > MOST_BYTES:
            return _too_many_bytes(status.st_size)
        with open(path, "rb") as file:
            return file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return Broken("missing")
    except PermissionError:
        return Broken("no permission to read it")
    except (OSError, ValueError) as error:
        return Broken(f"cannot be read ({getattr(error, 'strerror', None) or type(error).__name__})")


@cache
def formats() -> tuple[str, ...]:
    """What is tried, by content: AVIF where this Pillow has it, and nothing that only somebody's plugin knows."""
    from PIL import features

    avif = "avif" in features.modules and features.check_module("avif")
    return tuple(name for name in FORMATS if avif or name != "AVIF")


def decode(data: bytes, side: int = 0) -> Image | Broken:
    """The picture in `data`: RGB, upright by its EXIF tag, the first frame, on white where it is transparent.

    `side`: a JPEG, and any picture of many pixels, may come at a fraction of its size (1/2, 1/4, 1/8) as long as both
    sides stay at least this many pixels; 0 decodes it whole. 16-bit pictures are scaled to 8 bits, not cut off.
    Of several threads one at a time decodes a picture of many pixels.
    """
    from PIL import Image, UnidentifiedImageError

    if not data:
        return Broken("empty file")
    if len(data) > MOST_BYTES:
        return _too_many_bytes(len(data))
    try:
        picture = Image.open(io.BytesIO(data), formats=formats())
    except UnidentifiedImageError:
        return Broken(_not_a_picture(data))
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):  # the warning where it is made an error
        return Broken(f"too large: more than {MOST_PIXELS // 1_000_000} million pixels")
    except Exception as error:  # noqa: BLE001  a header can break its decoder in any way
        return _damaged(error)
    try:
        width, height = picture.size
        copies = _COPIES.get(picture.format or "", 1)
        most = MOST_PIXELS // max(1, copies // 2)
        if width * height > most:
            return Broken(f"too large: {width:,} x {height:,} pixels, at most {most // 1_000_000} million")
        whole = bool(picture.info.get("progressive"))  # a JPEG of which all is held before any of it is a picture
        if side:
            picture.draft(None, (side, side))
        if not _is_large((width, height) if whole else picture.size, copies):
            return upright(picture, side)
        with _LARGE:
            try:
                made = upright(picture, side)
                if made is not picture:
                    picture.close()
                return made
            finally:
                _give_back()
    except MemoryError:
        return Broken("too large for the memory of this machine")
    except Exception as error:  # noqa: BLE001  so can its body
        return _damaged(error)


def _is_large(size: tuple[int, int], copies: int = 1) -> bool:
    return size[0] * size[1] * copies > _MANY_PIXELS


def _give_back() -> None:
    """Give freed memory back to the system: glibc keeps it for the thread that freed it, and there are many threads."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def upright(picture: Image, side: int = 0) -> Image:
    """An opened picture as RGB, upright by its EXIF tag, on white where it is transparent; `side` as for `decode`."""
    turn = _orientation(picture)
    factors = (8, 4, 2) if side and _is_large(picture.size) else ()
    factor = next((factor for factor in factors if min(picture.size) // factor >= side), 1)
    picture.load()
    plain = as_rgb(picture, factor)
    return plain if turn is None else plain.transpose(turn)


@contextmanager
def quiet() -> Iterator[None]:
    """Within this block Pillow does not warn of odd files. Entered once, by whoever starts threads that decode."""
    from PIL import Image

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)  # `decode` counts pixels itself
        warnings.filterwarnings("ignore", module=r"PIL\.")
        yield


def _orientation(picture: Image) -> Transpose | None:
    """Which transposition puts the picture upright; a broken EXIF block says nothing."""
    from PIL.Image import Transpose

    try:
        value = int(picture.getexif().get(_ORIENTATION, 1))
    except Exception:  # noqa: BLE001  the picture itself may be whole
        return None
    return {
        2: Transpose.FLIP_LEFT_RIGHT, 3: Transpose.ROTATE_180, 4: Transpose.FLIP_TOP_BOTTOM, 5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270, 7: Transpose.TRANSVERSE, 8: Transpose.ROTATE_90,
    }.get(value)  # fmt: skip


def _not_a_picture(data: bytes) -> str:
    if data.startswith((b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"RIFF")):
        return "damaged header"
    brand = data[8:12] if data[4:8] == b"ftyp" else b""
    if brand in (b"avif", b"avis"):
        return (
            "damaged (AVIF)"
            if "AVIF" in formats()
            else "AVIF, which this Pillow cannot read; convert it, or update Pillow"
        )
    if brand in _HEIC:
        return "HEIC, which Pillow cannot read; convert it to JPEG"
    if data.startswith((b"\xff\x0a", b"\0\0\0\x0cJXL ", b"\0\0\0\x0cjP  ")):
        return "JPEG XL or JPEG 2000, which is not read; convert it to JPEG"
    start = data[:512].lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return "not a picture but a web page"
    if start.startswith((b"<svg", b"<?xml")):
        return "a vector drawing or XML, not a picture"
    return f"not a picture of a known format ({', '.join(name.lower() for name in formats())})"


def _damaged(error: Exception) -> Broken:
    cut = isinstance(error, EOFError) or "truncated" in str(error).lower()
    return Broken("truncated" if cut else "damaged")


def _too_many_bytes(size: int) -> Broken:
    return Broken(f"too large: {size >> 20:,} MB, at most {MOST_BYTES >> 20} MB")
