"""Two arrays and nothing else: a.npy and b.npy, row by row, whatever the two sides are."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mispair.data.config import DataConfig
from mispair.data.features import open_features
from mispair.data.files.image_of import ENDING as IMAGE_OF
from mispair.data.files.image_of import read_image_of
from mispair.data.files.weights import read_weights
from mispair.data.holdout import held_out
from mispair.data.readers.precomp import fold_repeated_rows
from mispair.data.readers.protocol import in_order
from mispair.data.source import Source
from mispair.errors import InputError
from mispair.progress import Progress


class TwoArrays:
    """Two .npy files, or a folder with {side}.npy or {split}_{side}.npy for both sides (or a.npy and b.npy)."""

    def recognises(self, config: DataConfig) -> bool:
        path = Path(config.path)
        return path.suffix.lower() == ".npy" or (os.path.isdir(path) and bool(array_splits(path, config)))

    def splits(self, config: DataConfig) -> list[str]:
        path = Path(config.path)
        return ["all"] if path.suffix.lower() == ".npy" else array_splits(path, config)

    def open(
        self, config: DataConfig, split: str, *, features: bool = True, progress: Progress | None = None
    ) -> Source:
        path = Path(config.path)
        first, second, whole = _find(path, split, config)
        images = open_features(first, f"the {config.sides[0]} features")
        texts = open_features(second, f"the {config.sides[1]} features")
        note = None
        image_of_text = read_image_of(second.with_name(f"{second.stem}{IMAGE_OF}"), len(images), len(texts))
        if image_of_text is None:
            per_image, images, note = fold_repeated_rows(images, len(texts), name=str(second))
            image_of_text = np.repeat(np.arange(len(images)), per_image)
        source = Source(
            name=path.resolve().stem,
            split=split,
            images=images,
            image_of_text=image_of_text,
            text_features=texts,
            notes=() if note is None else (note,),
            weights=_weights(first, config, split, whole, len(texts)),
        )
        return source if not whole or split == "all" else _part(source, split, config)


def array_splits(folder: Path, config: DataConfig) -> list[str]:
    """Splits of a folder that holds {split}_{side}.npy for both sides, or "all" for two arrays without a split."""
    splits = set()
    for first, second in _names(config):
        if os.path.exists(folder / f"{first}.npy") and os.path.exists(folder / f"{second}.npy"):
            splits.add("all")
        for name in os.listdir(folder):
            split = name.removesuffix(f"_{first}.npy")
            if split != name and os.path.exists(folder / f"{split}_{second}.npy"):
                splits.add(split)
    return in_order(splits)


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
    raise InputError(f"{path} has no split '{split}'; expected one of {', '.join(array_splits(path, config))}")


def _names(config: DataConfig) -> tuple[tuple[str, str], ...]:
    return (config.sides, ("a", "b"))


def _weights(first: Path, config: DataConfig, split: str, whole: bool, texts: int) -> NDArray[np.float32] | None:
    """The weights of the training pairs: of all pairs where the arrays hold all, else of the split."""
    if config.weights is None or split != "train":
        return None
    return read_weights(first.with_name(f"{config.weights}.npy" if whole else f"{split}_{config.weights}.npy"), texts)


def _part(source: Source, split: str, config: DataConfig) -> Source:
    assert source.images is not None
    assert source.text_features is not None
    names = [str(k) for k in range(len(source.images))]
    kept = held_out(names, split, config.holdout, config.path)
    rows = np.flatnonzero(kept)
    texts = np.flatnonzero(kept[source.image_of_text])
    new_row = np.cumsum(kept) - 1
    note = f"{source.name} has no splits: train, dev and test are parts drawn by row number (data.holdout)"
    return Source(
        name=source.name,
        split=split,
        images=source.images.subset(rows),
        image_of_text=new_row[source.image_of_text[texts]],
        text_features=source.text_features.subset(texts),
        notes=(*source.notes, note),
        weights=None if source.weights is None else source.weights[texts],
    )
