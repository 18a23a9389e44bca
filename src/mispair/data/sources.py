"""Find what a configuration names, scenes, a folder, a table or two arrays, and read one split of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from mispair.data.config import DataConfig
from mispair.data.features import FeatureStore
from mispair.data.files import plain_file
from mispair.data.precomp import list_splits, open_precomp
from mispair.data.scenes.build import make_scenes, split_sizes
from mispair.data.source import Source
from mispair.data.table import PairTable
from mispair.data.tables import TABLES, open_table, table_splits
from mispair.data.two import array_splits, open_arrays
from mispair.errors import InputError

Progress = Callable[[int, int], None]  # done, of how many


def list_data_splits(config: DataConfig) -> list[str]:
    """The splits `config` can open, in the usual order; "all" where the data has none."""
    config = located(config)
    if config.path == "scenes":
        return list(split_sizes(config.scenes))
    path = Path(config.path)
    if os.path.isdir(path):
        return list_splits(path) or array_splits(path, config)
    if path.suffix.lower() in TABLES:
        return table_splits(config)
    return ["all"] if config.second else []


def open_source(config: DataConfig, split: str, progress: Progress | None = None) -> Source:
    """One split as it lies there, before noise, words and batches."""
    source = _open(located(config), split, progress)
    return _limited(source, config)


def _limited(source: Source, config: DataConfig) -> Source:
    limits = [config.limit, {"dev": config.dev_limit, "test": config.test_limit}.get(source.split)]
    wanted = [limit for limit in limits if limit is not None]
    return source.first(min(wanted)) if wanted else source


def open_pairing(config: DataConfig, split: str) -> Source:
    """One split where only the pairing matters: no picture has to be drawn to know who belongs to whom."""
    if config.path != "scenes":
        return open_source(config, split)
    world = make_scenes(config.scenes, split)
    source = Source("scenes", split, None, world.image_of_text, world.captions, image_ids=world.ids)
    return _limited(source, config)


def given_pairs(source: Source) -> PairTable:
    """Every text with the image it belongs to."""
    texts = np.arange(len(source.image_of_text))
    return PairTable(source.image_of_text, texts, source.captions, source.image_ids, source.text_ids)


def train_captions(config: DataConfig) -> Sequence[str] | None:
    """What a vocabulary is made from."""
    if config.path == "scenes":
        return make_scenes(config.scenes, "train").captions  # no picture has to be drawn for its words
    try:
        return open_source(config, "train").captions
    except InputError as error:
        raise InputError(f"the vocabulary is made from the train split, but {error}; or set data.vocabulary") from None


def located(config: DataConfig) -> DataConfig:
    """A folder of pictures with a metadata file, as Hugging Face has them, is the table in it; so is one lone table."""
    folder = Path(config.path)
    if config.path == "scenes" or not os.path.isdir(folder) or list_splits(folder):
        return config
    for kind in TABLES:
        if os.path.isfile(folder / f"metadata{kind}"):
            return config.model_copy(update={"path": str(folder / f"metadata{kind}")})
    tables = [name for name in sorted(os.listdir(folder)) if name.lower().endswith(TABLES) and name[0] != "."]
    lone = len(tables) == 1 and not array_splits(folder, config)
    return config.model_copy(update={"path": str(folder / tables[0])}) if lone else config


def _open(config: DataConfig, split: str, progress: Progress | None) -> Source:
    if config.path == "scenes":
        return _open_scenes(config, split, progress)
    path = Path(config.path)
    kind = path.suffix.lower()
    if os.path.isdir(path):
        if list_splits(path):
            return open_precomp(path, split)
        if kind in (*TABLES, ".npy"):
            plain_file(path, "a table or an array")  # it is a folder, and this says so
        return open_arrays(path, split, config)
    if kind in TABLES:
        return open_table(config, split)
    if kind == ".npy":
        return open_arrays(path, split, config)
    if not os.path.lexists(path):
        raise InputError(f"{path} does not exist; expected a folder, a table, an .npy or the word scenes")
    raise InputError(f"{path} is nothing mispair reads; expected a folder, an .npy or a table ({', '.join(TABLES)})")


def _open_scenes(config: DataConfig, split: str, progress: Progress | None) -> Source:
    world = make_scenes(config.scenes, split)
    return Source(
        name="scenes",
        split=split,
        images=FeatureStore(world.features_telling(progress)),
        image_of_text=world.image_of_text,
        captions=world.captions,
        image_ids=world.ids,
        world=world,
    )
