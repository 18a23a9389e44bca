"""Look at a data set, and mismatch its pairs on purpose, from Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mispair.api.data_section import data_section

if TYPE_CHECKING:
    from mispair.data import DataConfig, Inspection
    from mispair.data.noise import NoiseIndex

    PathLike = str | os.PathLike[str]


def check(
    data: PathLike | DataConfig,
    *,
    noise: PathLike | None = None,
    vocabulary: PathLike | None = None,
    second: PathLike | None = None,
    features: PathLike | None = None,
    ids: PathLike | None = None,
    columns: Mapping[str, str] | None = None,
    missing: str | None = None,
    images: PathLike | None = None,
    sides: tuple[str, str] | None = None,
    tell: Callable[[str, int, int], None] | None = None,
) -> Inspection:
    """Read a data set once and say what is in it, and what to look at before training.

    Args:
        data: a folder, a table, a first .npy, "scenes", or a `mispair.data.DataConfig`.
        noise: a noise index (.npy) to check against the train split.
        vocabulary: a vocabulary (.json) to check against the captions.
        second: the second side's .npy, where it has no words.
        features, ids: for a table, the image features (.npy) and which image each row of them is.
        columns: for a table, names of the columns image, caption, split and id.
        missing: "refuse" or "skip" pairs whose image has no features or no picture.
        images: where the pictures are: a folder, a tar, a folder of tars.
        sides: what the two sides are called, ("image", "text") by default.
        tell: called with what is being done, how much of it is done, and how much there is.

    Returns:
        `Inspection`: facts by split, `findings` (nothing there: clean), `notes`.

    Raises:
        InputError: it cannot be used; the message says what and what would be right.

    Example:
        >>> mp.check("pairs.csv", features="images.npy").findings
    """
    from mispair.data import check_data

    section = data_section(data, {
        "vocabulary": vocabulary, "second": second, "features": features, "ids": ids, "columns": columns,
        "missing": missing, "images": images, "sides": sides,
    })  # fmt: skip
    return check_data(section, None if noise is None else os.fspath(noise), tell)


def corrupt(
    data: PathLike | DataConfig,
    out: PathLike,
    *,
    rate: float = 0.0,
    protocol: str = "image",
    seed: int = 0,
    shift: int = 0,
    start: int | None = None,
    repeat: bool = False,
    split: str = "train",
    second: PathLike | None = None,
    features: PathLike | None = None,
    ids: PathLike | None = None,
    columns: Mapping[str, str] | None = None,
    missing: str | None = None,
) -> NoiseIndex:
    """Mismatch pairs on purpose and write which, in the published layout; the data stays as it is.

    Args:
        data: a folder, a table, a first .npy, "scenes", or a `mispair.data.DataConfig`.
        out: the index file to write, .npy; `mp.train(..., options={"data.noise.index": out})` uses it.
        rate: share of images (protocol image) or pairs to choose.
        protocol: "image" moves images with all their captions, "caption" moves captions singly.
        seed: the same seed gives the same index.
        shift: instead of a draw, captions off by this many rows, in the last `rate` of the pairs.
        start: with `shift`, from this pair on, instead of `rate`.
        repeat: instead of a draw, one caption shown with `rate` of the pairs.
        split: the split to corrupt.
        second, features, ids, columns, missing: as in `mispair.check`.

    Returns:
        The index with its `hash`.

    Raises:
        InputError: nothing is asked for, two kinds of damage are, or the data cannot be used.

    Example:
        >>> mp.corrupt("f30k_precomp", "index.npy", rate=0.4).hash
    """
    from mispair.atomic import write_atomically
    from mispair.data import make_index, open_pairing, write_index
    from mispair.data.readers.dispatch import given_pairs
    from mispair.errors import InputError

    if rate == 0.0 and start is None:
        raise InputError("rate is missing: expected the share to corrupt, for instance rate=0.4")
    config = data_section(data, {
        "second": second, "features": features, "ids": ids, "columns": columns, "missing": missing,
        "noise": {
            "rate": rate, "protocol": protocol, "seed": seed, "shift": shift, "start": start, "repeat": repeat,
        },
    })  # fmt: skip
    assert config.noise is not None
    index = make_index(given_pairs(open_pairing(config, split)), config.noise)
    write_atomically(Path(out), lambda path: write_index(path, index))
    return index
