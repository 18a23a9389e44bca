"""Pictures of every kind a folder of strangers holds, made here."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
from PIL import Image


def colours(width: int = 48, height: int = 32) -> Image.Image:
    """Left half red, right half blue, a green band at the top: every turn of it looks different."""
    values = np.zeros((height, width, 3), np.uint8)
    values[:, : width // 2] = (200, 30, 30)
    values[:, width // 2 :] = (30, 30, 200)
    values[: height // 4] = (30, 200, 30)
    return Image.fromarray(values)


def saved(picture: Image.Image, kind: str, **options: object) -> bytes:
    out = io.BytesIO()
    picture.save(out, kind, **options)
    return out.getvalue()


def bomb(side: int = 50_000) -> bytes:
    """A PNG of a few dozen bytes that claims side x side pixels."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")
