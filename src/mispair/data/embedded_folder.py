"""EmbeddedFolder: the files that `mispair embed` writes. Their names stand here; every reader of tables finds them.

pairs.parquet        image_id, caption, split, pair_id; without the pairs whose picture could not be encoded
features.npy         (I, D) vectors or (I, R, D) cells, one row per picture that could be encoded
features_ids.txt     which picture each row is
texts.npy            (M, d) one vector per caption, where the encoder knows texts
joint.npy            (I, d) the pictures in the space of texts.npy, where the encoder has one for both sides
encoder.json         what made them
failed.csv           pictures that could not be had or encoded, and why; only where there are some; a copy lies
                     in the folder of every run and audit that did without them
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from mispair.atomic import write_atomically
from mispair.data.config import DataConfig
from mispair.data.files.reading import plain_file
from mispair.errors import InputError
from mispair.ordinary_file import read_ordinary

FAILED = "failed.csv"


class MadeBy(NamedTuple):
    """What made the features of a folder."""

    encoder: str
    cells: bool  # a grid of vectors per picture instead of one
    fingerprint: str  # of the encoder; empty where nobody wrote it down


@dataclass(frozen=True)
class EmbeddedFolder:
    """Where each file is."""

    path: Path

    @property
    def table_file(self) -> Path:
        return self.path / "pairs.parquet"

    @property
    def features_file(self) -> Path:
        return self.path / "features.npy"

    @property
    def ids_file(self) -> Path:
        return self.path / "features_ids.txt"

    @property
    def texts_file(self) -> Path:
        return self.path / "texts.npy"

    @property
    def joint_file(self) -> Path:
        return self.path / "joint.npy"

    @property
    def about_file(self) -> Path:
        return self.path / "encoder.json"

    @property
    def failed_file(self) -> Path:
        return self.path / FAILED

    def reasons(self) -> dict[str, str]:
        """Why each picture that failed did, by its name as failed.csv has it; nothing where there is no such file."""
        try:
            text = read_ordinary(self.failed_file, most=None).decode("utf-8", "surrogateescape")
            rows = csv.DictReader(io.StringIO(text, newline=""))
            return {row["name"]: row["reason"] for row in rows if row.get("name")}
        except (OSError, KeyError, csv.Error):
            return {}

    @property
    def begun(self) -> bool:
        """Whether `mispair embed` wrote this folder, whole or not."""
        return os.path.exists(self.about_file)

    def made_by(self) -> MadeBy:
        """What encoder.json says. Raises InputError where it is missing or damaged."""
        about = plain_file(self.about_file, "what made the features of a folder of mispair embed")
        try:
            said = json.loads(read_ordinary(about))
            return MadeBy(str(said["encoder"]), said["output"] == "cells", str(said.get("fingerprint", "")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise InputError(f"{about} is damaged; embed the data again") from None


def table_of(first: str | os.PathLike[str], second: str | os.PathLike[str]) -> DataConfig | None:
    """The table that says which rows of two arrays of one such folder belong together; None for other arrays.

    Pictures stand there once and captions pair by pair, so that row by row means nothing.
    """
    folder, other = (Path(os.path.abspath(file)).parent for file in (first, second))
    files = EmbeddedFolder(folder)
    if folder != other or not files.begun or not files.table_file.is_file():
        return None
    return DataConfig(path=str(files.table_file), ids=str(files.ids_file))


def copy_failed(features: str | None, folder: Path) -> Path | None:
    """The list of the pictures that a folder of results does without, that of its `features` copied; None: of none."""
    listed = None if features is None else EmbeddedFolder(Path(features).parent).failed_file
    if listed is not None and listed.is_file():
        write_atomically(folder / FAILED, partial(shutil.copyfile, listed))
    return folder / FAILED if (folder / FAILED).is_file() else None
