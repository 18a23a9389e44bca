"""Open what a configuration names: scenes, a folder, a table, or two arrays."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from mispair.data.config import DataConfig
from mispair.data.features import FeatureStore
from mispair.data.files import plain_file
from mispair.data.noise import apply, make_index
from mispair.data.pairs import PairData, content_hash
from mispair.data.precomp import list_splits, open_precomp
from mispair.data.scenes.build import make_scenes, split_sizes
from mispair.data.source import Source
from mispair.data.table import PairTable
from mispair.data.tables import TABLES, WITHOUT_FEATURES, open_table, table_splits
from mispair.data.text import TokenStore, Vocabulary
from mispair.data.two import array_splits, open_arrays
from mispair.errors import InputError

Progress = Callable[[int, int], None]  # done, of how many


def open_split(
    config: DataConfig, split: str, *, vocabulary: Vocabulary | None = None, progress: Progress | None = None
) -> PairData:
    """One split, ready to use: words numbered, noise applied (to train alone), features still on disk.

    The vocabulary is the given one, else the file the configuration names, else made from the train captions.
    """
    source = open_source(config, split, progress)
    if source.images is None:
        raise InputError(
            f"{config.path} has no features; expected an .npy for its {config.sides[0]} column, so set data.features"
        )
    if config.missing == "refuse":
        for finding in source.findings:
            if finding.kind == WITHOUT_FEATURES:
                raise InputError(finding.text)
    pairs = _pairs(source)
    noise_hash = None
    if config.noise is not None and split == "train":
        index = make_index(pairs, config.noise)
        pairs, noise_hash = apply(pairs, index), index.hash
    notes = source.notes
    texts: TokenStore | FeatureStore
    if source.text_features is not None:
        texts, vocabulary = source.text_features, None
    else:
        assert source.captions is not None, "a source has words or features on its second side"
        vocabulary = vocabulary or _vocabulary(config, source)
        texts = TokenStore.encode(source.captions, vocabulary, config.max_words)
        if texts.truncated:
            notes = (
                *notes,
                f"{texts.truncated:,} captions of {split} were cut to {config.max_words} words (max_words)",
            )
    return PairData(
        name=source.name,
        split=split,
        table=pairs,
        images=source.images,
        texts=texts,
        vocabulary=vocabulary,
        captions_per_image=source.captions_per_image,
        image_of_text=source.image_of_text,
        content_hash=content_hash(source),
        noise_hash=noise_hash,
        sides=config.sides,
        notes=(*notes, *(finding.text for finding in source.findings)),
        world=source.world,
    )


def pair_table(config: DataConfig, split: str) -> PairTable:
    """The pairs of one split before any noise; features are not needed for it."""
    if config.path == "scenes":
        world = make_scenes(config.scenes, split)  # no picture has to be drawn to know who belongs to whom
        source = Source("scenes", split, None, world.image_of_text, world.captions, image_ids=world.ids)
        return _pairs(source if config.limit is None else source.first(config.limit))
    return _pairs(open_source(config, split))


def list_data_splits(config: DataConfig) -> list[str]:
    """The splits `config` can open, in the usual order."""
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
    source = _open(config, split, progress)
    return source if config.limit is None else source.first(config.limit)


def _open(config: DataConfig, split: str, progress: Progress | None) -> Source:
    if config.path == "scenes":
        return _open_scenes(config, split, progress)
    path = Path(config.path)
    kind = path.suffix.lower()
    if os.path.isdir(path):
        if list_splits(path):
            return open_precomp(path, split)
        if kind in (*TABLES, ".npy"):
            plain_file(
                path, "a table of pairs" if kind in TABLES else "an array of features"
            )  # says that it is a folder
        return open_arrays(path, split, config)
    if kind in TABLES:
        return open_table(config, split)
    if kind == ".npy":
        return open_arrays(path, split, config)
    if not os.path.lexists(path):
        raise InputError(f"{path} does not exist; expected a folder, a table, an .npy or the word scenes")
    raise InputError(f"{path} is nothing mispair reads; expected a folder, an .npy or a table ({', '.join(TABLES)})")


def _pairs(source: Source) -> PairTable:
    texts = np.arange(len(source.image_of_text))
    return PairTable(source.image_of_text, texts, source.captions, source.image_ids, source.text_ids)


def _open_scenes(config: DataConfig, split: str, progress: Progress | None) -> Source:
    world = make_scenes(config.scenes, split)
    return Source(
        name="scenes",
        split=split,
        images=FeatureStore(world.compute_features(progress)),
        image_of_text=world.image_of_text,
        captions=world.captions,
        image_ids=world.ids,
        world=world,
    )


def _vocabulary(config: DataConfig, source: Source) -> Vocabulary:
    if config.vocabulary:
        return Vocabulary.load(config.vocabulary)
    captions = source.captions if source.split in ("train", "all") else _train_captions(config)
    return Vocabulary.build(captions or (), config.min_count)


def _train_captions(config: DataConfig) -> Sequence[str] | None:
    if config.path == "scenes":
        return make_scenes(config.scenes, "train").captions  # no picture has to be drawn for its words
    try:
        return open_source(config, "train").captions
    except InputError as error:
        raise InputError(f"the vocabulary is made from the train split, but {error}; or set data.vocabulary") from None
