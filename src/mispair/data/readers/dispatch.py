"""Which reader reads what a configuration names, and one split of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mispair.data.config import DataConfig
from mispair.data.files.npy import read_header
from mispair.data.files.rows import TABLES
from mispair.data.pair_table import PairTable
from mispair.data.readers.arrays import TwoArrays
from mispair.data.readers.coco import CocoCaptions
from mispair.data.readers.flickr_token import FlickrTokens
from mispair.data.readers.image_folder import ImageFolder
from mispair.data.readers.karpathy import KarpathySplits
from mispair.data.readers.parquet_shards import ParquetShards
from mispair.data.readers.picture_files import PictureFiles
from mispair.data.readers.precomp import PrecomputedFolder
from mispair.data.readers.protocol import Reader
from mispair.data.readers.saved_dataset import SavedDataset
from mispair.data.readers.scenes import Scenes
from mispair.data.readers.table import Table
from mispair.data.readers.tar_shards import TarShards
from mispair.data.readers.token_ids import TokenIdFolder
from mispair.data.source import Source
from mispair.errors import InputError
from mispair.missing_path import does_not_exist, is_missing
from mispair.progress import Progress

# The first that recognises the data reads it. A new format is one file beside this one and one entry here.
READERS: tuple[Reader, ...] = (
    Scenes(),
    TokenIdFolder(),  # before the folders whose names it shares
    PrecomputedFolder(),
    SavedDataset(),
    TarShards(),  # before tables: img2dataset writes a table beside each tar
    Table(),
    TwoArrays(),
    ImageFolder(),
    ParquetShards(),
    KarpathySplits(),
    CocoCaptions(),
    FlickrTokens(),
    PictureFiles(),  # last: nearly every folder above has pictures below it
)
_ARRAYS = (".pt", ".pth", ".npz", ".pkl", ".pickle")  # other ways to save arrays
_SPREADSHEETS = (".xlsx", ".xls", ".ods", ".numbers")


def list_data_splits(config: DataConfig) -> list[str]:
    """The splits `config` can open, in the usual order; "all" where the data has none."""
    return reader_of(config).splits(config)


def open_source(config: DataConfig, split: str, progress: Progress | None = None) -> Source:
    """One split as it lies there, before noise, words and batches."""
    source = reader_of(config).open(config, split, progress=progress)
    if config.weights is not None and split == "train" and source.weights is None:
        raise InputError(
            f"{config.path} has no place for the weights {config.weights!r}; expected a table with that column, or"
            f" arrays with train_{config.weights}.npy or {config.weights}.npy beside them"
        )
    return _limited(_named(source), config)


def open_pairing(config: DataConfig, split: str) -> Source:
    """One split where only the pairing matters: no picture has to be drawn to know who belongs to whom."""
    return _limited(_named(reader_of(config).open(config, split, features=False)), config)


def has_test(config: DataConfig) -> bool:
    """Whether there is a test split, of its own or held out; the part of few images may have come out empty."""
    splits = list_data_splits(config)
    if splits != ["all"]:
        return "test" in splits
    try:
        open_pairing(config, "test")
    except InputError:
        return False
    return True


def given_pairs(source: Source) -> PairTable:
    """Every text with the image it belongs to."""
    texts = np.arange(len(source.image_of_text))
    return PairTable(
        source.image_of_text, texts, source.captions, source.image_ids, source.text_ids, weights=source.weights
    )


def train_captions(config: DataConfig) -> Sequence[str] | None:
    """The captions of the train split, which a vocabulary is made from; None where there are no words."""
    try:
        return open_pairing(config, "train").captions
    except InputError as error:
        raise InputError(f"the vocabulary is made from the train split, but {error}; or set data.vocabulary") from None


def reader_of(config: DataConfig) -> Reader:
    """The reader that recognises the data; InputError where none does."""
    reader = next((reader for reader in READERS if reader.recognises(config)), None)
    if reader is not None:
        return reader
    path, (a, b) = Path(config.path), config.sides
    if os.path.isdir(path):
        raise InputError(
            f"{path} holds no data mispair knows; expected pictures, a table ({', '.join(TABLES)}), tar shards,"
            f" train_ims.npy and train_caps.txt, or {a}.npy and {b}.npy, or a.npy and b.npy"
        )
    if is_missing(path):
        raise InputError(f"{does_not_exist(path)}; expected a folder, a table, a .tar, an .npy or the word scenes")
    if path.suffix.lower() in (".gz", ".bz2", ".xz", ".zst", ".zip"):
        raise InputError(
            f"{path} is compressed, and is read in place; expected it unpacked, so try: gunzip -k (or unzip)"
        )
    if path.suffix.lower() == ".txt":
        raise InputError(
            f"{path} has an ending that says nothing; expected a table ({', '.join(TABLES)}) or Flickr's .token.txt, so"
            " rename it to what it is"
        )
    if path.suffix.lower() in _ARRAYS:
        read_header(path, "a .npy, a table or a folder")  # says what it is instead, and what to save
    if path.suffix.lower() in _SPREADSHEETS:
        raise InputError(f"{path} is a spreadsheet's own file; expected a table of text, so save it as .csv in UTF-8")
    raise InputError(
        f"{path} is nothing mispair reads; expected a folder, a table"
        f" ({', '.join(TABLES)}), a .tar, a .json or .token of captions, or an .npy"
    )


def _named(source: Source) -> Source:
    """The source, once the names of its pictures are known to be text: as ids they go into tables and lists."""
    if source.pictures is None:
        return source
    try:
        "\n".join(source.image_ids or ()).encode()
    except UnicodeEncodeError:
        name = next(name for name in source.image_ids or () if _is_bytes(name))
        shown = os.fsencode(name).decode("utf-8", "backslashreplace")
        raise InputError(
            f"{source.name}: the name of the picture {shown} is not UTF-8; rename it (convmv does)"
        ) from None
    return source


def _is_bytes(name: str) -> bool:
    """Whether a name holds bytes that are no text; Python hides them in surrogates."""
    return any("\ud800" <= letter <= "\udfff" for letter in name)


def _limited(source: Source, config: DataConfig) -> Source:
    limits = [config.limit, {"dev": config.dev_limit, "test": config.test_limit}.get(source.split)]
    wanted = [limit for limit in limits if limit is not None]
    return source.first(min(wanted)) if wanted else source
