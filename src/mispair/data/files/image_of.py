"""Which image a text belongs to, where counting does not say: {split}_image_of.npy, one row number per text.

The precomputed format divides texts by images, so it cannot say that one image has three captions and another five.
With this file beside it, it can; the features then hold every image once.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mispair.data.files.npy import open_integers
from mispair.errors import InputError

ENDING = "_image_of.npy"


def read_image_of(path: Path, images: int, texts: int) -> NDArray[np.int64] | None:
    """(texts,) row of the image of each text, or None where there is no such file.

    Raises InputError where it is not one row number below `images` per text.
    """
    if not os.path.exists(path):
        return None
    what = f"the row of the image of each of {texts:,} texts"
    image_of = open_integers(path, what)
    if image_of.shape != (texts,):
        raise InputError(f"{path} has shape {image_of.shape}; expected ({texts},): {what}")
    wrong = np.flatnonzero((image_of < 0) | (image_of >= images))
    if len(wrong):
        raise InputError(
            f"{path}, entry {wrong[0]}: {image_of[wrong[0]]}; expected a row of the images, 0 to {images - 1}"
        )
    return image_of
