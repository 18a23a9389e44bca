"""What a writer is, and what all of them share."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mispair.auditing.fixing.judged_data import JudgedData
from mispair.auditing.fixing.slots import WrittenPairs
from mispair.data.config import DataConfig
from mispair.data.files.npy_blocks import write_blocks
from mispair.data.files.picture_folder import FolderStore
from mispair.data.picture_store import Pictures


class Writer(Protocol):
    """One format. `dispatch.writer_of` finds it by the reader that reads the data."""

    weights: str  # what `--weights` is told about the weights it wrote

    def home(self, config: DataConfig) -> Path | None:
        """The folder in which the files of the data set lie; None where it has none, or not all lie in one."""

    def files(self, config: DataConfig) -> list[str]:
        """The files of the data set, as paths relative to its home."""

    def write(self, data: JudgedData, pairs: WrittenPairs, out: Path) -> None:
        """The data set with these pairs into the folder `out`; image, order and every other value stay.

        Raises InputError where the format cannot say it, OSError where it cannot be written.
        """

    def arguments(self, config: DataConfig, out: Path) -> list[str]:
        """What `mispair train` must be told to read what was written to `out`, weights and columns left out."""


def reading_options(config: DataConfig, *, images: str | None = None) -> list[str]:
    """Options with which the same pictures or features are read again; they stayed where they were."""
    words: list[str] = []
    if config.encoder is not None:  # pictures were encoded: they will be found in the cache
        words += ["--encoder", config.encoder] if config.encoder != "basic" else []
        words += ["--cells"] if config.cells else []
    elif config.features is not None:
        words += ["--features", config.features, *(["--ids", config.ids] if config.ids else [])]
    if images is not None:
        words += ["--images", images]
    if config.allow_outside:
        words.append("--allow-outside")
    for option, column in config.columns.model_dump(exclude_none=True).items():
        words += [f"--{option}-column", column] if option != "id" else []
    return words + (["--missing", "skip"] if config.missing == "skip" else [])


def where_found(pictures: Pictures | None, home: Path) -> str | None:
    """What `--images` is told: the folder the pictures were found in, which may lie below `home`."""
    if pictures is None:
        return None
    return str(pictures.origin.root if isinstance(pictures.origin, FolderStore) else home)


def link_or_copy(source: Path, target: Path) -> None:
    """A file that did not change: the same file under a second name where the disk allows that, else a copy."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(os.path.realpath(source), target)
    except OSError:
        shutil.copyfile(source, target)


def save_array(path: Path, values: NDArray[np.generic]) -> None:
    """`numpy.save` through Python's own file, whose errors say what is wrong."""
    write_blocks(path, values.shape, values.dtype, [values])
