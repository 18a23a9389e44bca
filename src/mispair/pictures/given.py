"""A picture that a person gives, in any form, as the bytes of a picture file."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any

from mispair.errors import InputError
from mispair.missing_path import does_not_exist, is_missing
from mispair.pictures.decode import Broken, read_picture, upright

if TYPE_CHECKING:
    from typing import TypeGuard

    from PIL.Image import Image


def is_picture(value: Any) -> TypeGuard[os.PathLike[str] | bytes | Image]:
    """Whether this is a picture: its path (no mere string, which may be words), its bytes, or a PIL picture."""
    from PIL.Image import Image

    return isinstance(value, (bytes, os.PathLike, Image))


def picture_bytes(picture: str | os.PathLike[str] | bytes | Image) -> bytes:
    """The file at a path, bytes as they are, or a PIL picture as a PNG.

    Raises:
        InputError: the file cannot be read.
    """
    if isinstance(picture, bytes):
        return picture
    if not isinstance(picture, (str, os.PathLike)):
        return as_png(upright(picture))
    if is_missing(picture):
        raise InputError(f"{does_not_exist(picture)}; give a picture file")
    data = read_picture(picture)
    if isinstance(data, Broken):
        raise InputError(f"{os.fspath(picture)}: {data.reason}; give a picture file")
    return data


def as_png(picture: Image) -> bytes:
    """A PIL picture as a PNG file, quickly and without loss."""
    out = io.BytesIO()
    picture.save(out, "PNG", compress_level=1)
    return out.getvalue()
