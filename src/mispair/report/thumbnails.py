"""A small picture inside the page. Nothing of the stranger's file itself reaches it: see `pictures.reencode`."""

from __future__ import annotations

import base64

from mispair.pictures.reencode import reencode


def thumbnail(data: bytes, side: int) -> str:
    """A data URI of the picture at most `side` pixels wide and high; "" where it cannot be shown."""
    small = reencode(data, side)
    return "" if small is None else "data:image/webp;base64," + base64.b64encode(small).decode()
