"""A stranger's picture, decoded and encoded again: nothing of the file itself reaches a browser."""

from __future__ import annotations

import io

from mispair.pictures.decode import Broken, decode, quiet


def reencode(data: bytes, side: int) -> bytes | None:
    """WebP at most `side` pixels wide and high, without any metadata; None where the picture cannot be decoded."""
    with quiet():
        picture = decode(data, side)
    if isinstance(picture, Broken):
        return None
    picture.thumbnail((side, side))
    picture.info.clear()
    out = io.BytesIO()
    picture.save(out, "WEBP", quality=78, method=3)
    return out.getvalue()
