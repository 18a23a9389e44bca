"""Features that go along with the pairs: rows of arrays, and the list that says whose each row is."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mispair.auditing.fixing.judged_data import JudgedData
from mispair.auditing.fixing.slots import Slots, WrittenPairs, weights_of
from mispair.auditing.fixing.writers.protocol import save_array
from mispair.data.config import DataConfig
from mispair.data.features import FeatureStore
from mispair.data.files.npy_blocks import some_rows, write_blocks
from mispair.data.readers.dispatch import open_source
from mispair.data.readers.pair_list import features_path
from mispair.errors import InputError


def write_rows(store: FeatureStore, rows: NDArray[np.int64], path: Path) -> None:
    """Rows of an array as they lie there, in their own type, and how many regions of each are real."""
    write_blocks(path, (len(rows), *store.array.shape[1:]), store.array.dtype, some_rows(store.raw, rows))
    if store.lengths is not None:
        where = rows if store.rows is None else store.rows[rows]
        save_array(path.with_name(f"{path.stem}_lens.npy"), store.lengths[where])


def ids_path(config: DataConfig, features: Path) -> Path:
    """The list that says which image each row of the features is, whether or not there is one."""
    return Path(config.ids) if config.ids else features.with_name(f"{features.stem}_ids.txt")


def feature_names(config: DataConfig, path: Path) -> list[str]:
    """The files of features that lie beside the list of pairs `path`, and go with it."""
    features = features_path(config, path)
    files = [] if features is None else [features, ids_path(config, features)]
    files += [Path(config.second)] if config.second is not None else []
    return [file.name for file in files if file.parent == path.parent and file.is_file()]


def feature_options(config: DataConfig, path: Path, out: Path) -> list[str]:
    """Options that name the features of what was written as `out`, where they are not found beside it."""
    features = features_path(config, path)
    if features is None or config.encoder is not None or features_path(DataConfig(path=str(out)), out) is not None:
        return []
    words = []
    for option, file in {"--features": features, **({"--ids": Path(config.ids)} if config.ids else {})}.items():
        here = out.parent / file.name
        words += [option, str(here if here.exists() else file)]
    return words


def write_features(data: JudgedData, path: Path, pairs: WrittenPairs, out: Path) -> None:
    """Features beside the list go with it; where only the order linked them, a list of ids does from now on."""
    config, source = data.config, data.source
    features = features_path(config, path)
    if features is None or config.encoder is not None:  # what was encoded lies in the cache, by content
        return
    ids = ids_path(config, features)
    as_it_was = len(pairs.slots) == len(source.image_of_text) and np.array_equal(pairs.images, source.image_of_text)
    if ids.exists() or as_it_was:
        for file in (features, ids):
            if file.exists() and file.parent == path.parent:
                shutil.copyfile(file, out / file.name)
        return
    every = open_source(config, "all")
    assert every.images is not None
    assert every.image_ids is not None
    write_rows(every.images, np.arange(len(every.images)), out / f"{path.stem}.npy")
    (out / f"{path.stem}_ids.txt").write_text("".join(f"{name}\n" for name in every.image_ids), encoding="utf-8")


def write_weights(slots: Slots, listed: int, path: Path) -> None:
    """The weight of every caption that is left of the `listed` ones; nothing where the fix gives none."""
    weights = weights_of(slots, listed)
    if weights is not None:
        save_array(path, weights)


def write_second_side(data: JudgedData, slots: Slots, pairs: WrittenPairs, out: Path) -> None:
    """The vectors of the texts of all splits, those of pairs that leave left out, moved where their captions moved."""
    config, source = data.config, data.source
    if config.second is None or source.text_features is None or config.encoder is not None:
        return
    assert source.positions is not None
    if len(pairs.texts) and int(pairs.texts.max()) >= len(source.positions):
        raise InputError("a caption that a reviewer wrote has no vector in the second side; embed the captions anew")
    place_of = {int(slot): place for place, slot in enumerate(pairs.slots)}
    position_of = {int(position): slot for slot, position in enumerate(source.positions)}
    every = open_source(config, "all")
    assert every.text_features is not None
    assert every.positions is not None
    row_of = {int(position): row for row, position in enumerate(every.positions)}
    rows = []
    for position, row in row_of.items():
        slot = position_of.get(position)
        if slot is None:
            rows.append(row)
        elif slots[position].keep:
            rows.append(row_of[int(source.positions[pairs.texts[place_of[slot]]])])
    write_rows(every.text_features, np.array(rows, np.int64), out / Path(config.second).name)
