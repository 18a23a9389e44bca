"""Hugging Face image folders with splits: train/metadata.csv beside train/0001.jpg, test/metadata.jsonl, ...

A folder with one metadata file at its top is the table in it (`readers/table.py`).
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mispair.data.config import DataConfig
from mispair.data.files.picture_folder import FolderStore
from mispair.data.files.rows import TABLES
from mispair.data.picture_store import PictureIndex, PictureStore
from mispair.data.readers.pair_list import PairList, usual_split
from mispair.data.readers.pair_list_reader import PairListReader
from mispair.data.readers.table import read_table
from mispair.errors import InputError


class ImageFolder(PairListReader):
    """A folder whose subfolders each hold a metadata file and pictures; the subfolders are the splits."""

    def recognises(self, config: DataConfig) -> bool:
        return os.path.isdir(config.path) and bool(metadata_files(Path(config.path)))

    def read(self, config: DataConfig) -> PairList:
        return _read(config)


def metadata_files(folder: Path) -> dict[str, Path]:
    """The metadata file of each subfolder, by the subfolder's name."""
    files: dict[str, Path] = {}
    for name in sorted(os.listdir(folder)):
        for kind in TABLES:
            if name[0] != "." and os.path.isfile(path := folder / name / f"metadata{kind}"):
                files.setdefault(name, path)
    return files


def _read(config: DataConfig) -> PairList:
    """All splits in one list; an image is called by its subfolder and its name in there."""
    root = Path(config.path)
    parts: list[tuple[str, PairList]] = []
    for name, path in metadata_files(root).items():
        part = read_table(config.model_copy(update={"path": str(path)}))
        if part.pictures is None and config.images is None:
            raise InputError(f"{path} names no picture that lies beside it (first {part.images[0]!r}); add them there")
        parts.append((name, part))
    beside = config.images is None  # else all lie where somebody says, and are called there as the files say
    places: dict[str, Any] = {}
    missing: dict[str, str] = {}
    for name, part in parts:
        if part.pictures is not None:
            found = part.pictures.places.items()
            places |= {f"{name}/{image}": f"{name}/{place}" if beside else place for image, place in found}
            missing |= {f"{name}/{image}": reason for image, reason in part.pictures.missing.items()}
    first = parts[0][1]
    elsewhere = None if beside else first.pictures
    store: PictureStore = FolderStore(root, config.allow_outside) if elsewhere is None else elsewhere.store
    lists = [part for _, part in parts]
    offsets = np.cumsum([0, *(int(part.rows[-1]) + 1 for part in lists)])
    captions = None if first.captions is None else [text for part in lists for text in part.captions or []]
    return replace(
        first,
        path=root,
        images=[f"{name}/{image}" for name, part in parts for image in part.images],
        captions=captions,
        splits=[usual_split(name) for name, part in parts for _ in part.images],
        ids=None if first.ids is None else [pair for part in lists for pair in part.ids or []],
        lines=np.concatenate([part.lines for part in lists]),
        rows=np.concatenate([part.rows + offset for part, offset in zip(lists, offsets, strict=False)]),
        notes=tuple(note for part in lists for note in part.notes),
        findings=tuple(finding for part in lists for finding in part.findings),
        weights=None
        if first.weights is None
        else np.concatenate([part.weights for part in lists if part.weights is not None]),
        pictures=PictureIndex(store, places, missing, config.images or str(root)),
    )
