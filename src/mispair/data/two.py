"""Two arrays and nothing else: a.npy and b.npy, row by row, whatever the two sides are."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from mispair.data.config import DataConfig
from mispair.data.features import open_features
from mispair.data.holdout import held_out
from mispair.data.precomp import ORDER, align
from mispair.data.source import Source
from mispair.errors import InputError


def array_splits(folder: Path, config: DataConfig) -> list[str]:
    """Splits of a folder that holds {split}_{side}.npy for both sides, or "all" for two arrays without a split."""
    found = []
    for first, second in _names(config):
        if os.path.exists(folder / f"{first}.npy") and os.path.exists(folder / f"{second}.npy"):
            found.append("all")
        for name in sorted(os.listdir(folder)):
            split = name.removesuffix(f"_{first}.npy")
            if split != name and os.path.exists(folder / f"{split}_{second}.npy"):
                found.append(split)
    return sorted(set(found), key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))


def open_arrays(path: Path, split: str, config: DataConfig) -> Source:
    """Two arrays as pairs: of a folder, or `path` and `config.second`."""
    first, second, whole = _find(path, split, config)
    images = open_features(first, f"the {config.sides[0]} features")
    texts = open_features(second, f"the {config.sides[1]} features")
    per_image, images, note = align(images, len(texts), name=str(second))
    source = Source(
        name=path.resolve().stem,
        split=split,
        images=images,
        image_of_text=np.repeat(np.arange(len(images)), per_image),
        text_features=texts,
        notes=() if note is None else (note,),
    )
    return source if not whole or split == "all" else _part(source, split, config)


def _find(path: Path, split: str, config: DataConfig) -> tuple[Path, Path, bool]:
    """The two files, and whether they hold all splits together."""
    if path.suffix.lower() == ".npy":
        if config.second is None:
            raise InputError(f"{path} is one side of the pairs; expected a second .npy, so give that too (data.second)")
        return path, Path(config.second), True
    for first, second in _names(config):
        for prefix, whole in ((f"{split}_", False), ("", True)):
            one, other = path / f"{prefix}{first}.npy", path / f"{prefix}{second}.npy"
            if os.path.exists(one) and os.path.exists(other):
                return one, other, whole
    splits = array_splits(path, config)
    if splits:
        raise InputError(f"{path} has no split '{split}'; expected one of {', '.join(splits)}")
    a, b = config.sides
    raise InputError(
        f"{path} holds no data mispair knows; expected {split}_ims.npy and {split}_caps.txt, or {a}.npy and {b}.npy,"
        " or a.npy and b.npy"
    )


def _names(config: DataConfig) -> tuple[tuple[str, str], ...]:
    return (config.sides, ("a", "b"))


def _part(source: Source, split: str, config: DataConfig) -> Source:
    assert source.images is not None
    assert source.text_features is not None
    names = [str(k) for k in range(len(source.images))]
    kept = held_out(names, split, config.holdout, config.path)
    rows = np.flatnonzero(kept)
    texts = np.flatnonzero(kept[source.image_of_text])
    new_row = np.cumsum(kept) - 1
    note = f"{source.name} has no splits: {split} is a part drawn by row number (data.holdout)"
    return Source(
        name=source.name,
        split=split,
        images=source.images.subset(rows),
        image_of_text=new_row[source.image_of_text[texts]],
        text_features=source.text_features.subset(texts),
        notes=(*source.notes, note),
    )
