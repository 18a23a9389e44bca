"""Pictures and captions of a data set through an encoder, once: into the cache, and from there into feature files.

What comes out is the same data set with `features` (and, where asked for, `second`) set, so that everything that reads
features reads raw pictures too, and `fix` still rewrites the files the pictures came with.
Letters: I distinct images, M texts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mispair.atomic import write_atomically, write_text
from mispair.counted import counted
from mispair.data.cache_folder import cache_folder
from mispair.data.config import DataConfig
from mispair.data.embedded_folder import EmbeddedFolder
from mispair.data.files.npy import open_array
from mispair.data.files.npy_blocks import some_rows, write_blocks
from mispair.data.picture_store import Pictures
from mispair.data.readers.dispatch import list_data_splits, open_pairing
from mispair.data.readers.pair_list import on_the_web
from mispair.data.readers.picture_files import no_captions
from mispair.data.source import Source
from mispair.data.splits import refuse_left_out
from mispair.encoders.pipeline import (
    EncodingProgress,
    Encodings,
    Failure,
    PictureItem,
    encode_pictures,
    encode_texts,
    find_undecodable,
    write_failed,
)
from mispair.encoders.protocol import Encoder
from mispair.encoders.registry import open_encoder
from mispair.errors import InputError
from mispair.progress import Tell, silent
from mispair.workflows.embed_shards import part_of
from mispair.workflows.embedded_before import embedded_before

DEFAULT = "basic"
_ROWS = 1024  # copied at a time


@dataclass(frozen=True)
class Encoding:
    """How pictures and captions are encoded."""

    encoder: str | Encoder = DEFAULT
    cells: bool = False  # a grid of vectors per picture instead of one
    texts: bool | None = None  # captions as the encoder's vectors (True) or as words; None: as pictures are, if it can
    batch: int = 32
    workers: int | None = None  # threads that decode; None: one per core
    device: str = "auto"


@dataclass(frozen=True, eq=False)
class EncodedData:
    """What encoding a data set gave."""

    config: DataConfig  # with `features` set, and `second` where captions were encoded
    source: Source  # all splits, as they lie there
    kept: Source  # the same without the pairs whose picture could not be encoded
    encoder: Encoder
    failures: tuple[Failure, ...]  # pictures that could not be had or encoded; their pairs have no features
    encoded: int  # pictures encoded by this call; the others were in the cache


def needs_encoding(config: DataConfig) -> bool:
    """Whether this is raw data: pictures, and no features of them."""
    if config.path == "scenes" or config.features is not None:
        return False
    source = open_pairing(config, list_data_splits(config)[0])
    return source.images is None and source.pictures is not None


def neither_pictures_nor_features(config: DataConfig) -> bool:
    """Whether this is a list of pairs whose images were not found, neither as files nor as vectors."""
    source = open_pairing(config, list_data_splits(config)[0])
    return source.listed > 0 and source.images is None and source.pictures is None


def with_features(config: DataConfig, encoding: Encoding | None = None, tell: Tell = silent) -> DataConfig:
    """The configuration with features: its own where it has some, else its pictures are encoded first.

    Raises:
        InputError: pictures that cannot be had or decoded, unless `missing: skip`; the encoder's weights are not here;
            the cache cannot be written.
    """
    if not needs_encoding(config):
        return embedded_before(config, None if encoding is None else encoding.texts)
    if config.second is not None:
        encoding = replace(encoding or Encoding(config.encoder or DEFAULT, config.cells), texts=False)
    return encode_data(config, encoding or Encoding(config.encoder or DEFAULT, config.cells), tell).config


def encode_data(
    config: DataConfig,
    encoding: Encoding,
    tell: Tell = silent,
    folder: Path | None = None,
    shard: tuple[int, int] | None = None,
) -> EncodedData:
    """Encode the pictures of all splits, and the captions where asked for; what the cache holds is not done again.

    Args:
        folder: where the feature files go; None: into the cache.
        shard: (i, n) for the i-th of n shares of the pictures and their captions alone.

    Raises:
        InputError: as `with_features` does.
    """
    source = open_raw(config)
    if shard is not None:
        source = part_of(source, *shard)
    assert source.pictures is not None
    if encoding.texts is not False and source.captions is None:  # said before hours of encoding, not after
        raise InputError(no_captions(Path(config.path)))
    encoder = open_encoder(encoding.encoder, device=encoding.device)
    output = "cells" if encoding.cells else "vector"
    done = _encode_pictures(config, encoder, source.pictures, output, encoding, tell)
    _refuse_failed(config, done.failed, len(done.keys))
    ids = list(source.image_ids or ())
    absent = (Failure(None, name, reason) for name, reason in source.no_picture.items())
    failures = (*done.failed, *absent)
    features = _write_pictures(done, output, encoder, ids, failures, folder)
    update: dict[str, Any] = {"features": str(features), "ids": None}
    update |= {"encoder": encoder.name, "cells": encoding.cells}
    good = np.array([row for row, key in enumerate(done.keys) if key is not None], np.int64)
    kept = source if len(good) == len(done.keys) else source.of_images(good)
    if _wants_texts(encoding, encoder, source):
        # A folder of features lists the pairs it keeps and no others; in the cache the table is the one that was given.
        alone = replace(kept, positions=np.arange(len(kept.image_of_text)), listed=0)
        texts = source if folder is None else alone
        update["second"] = str(_write_texts(encoder, texts, tell, folder))
        if encoder.joint and not encoding.cells:
            update["joint"] = str(_write_joint(encoder, features))
    return EncodedData(config.model_copy(update=update), source, kept, encoder, failures, done.encoded)


def encode_jointly(config: DataConfig, encoding: Encoding, tell: Tell = silent) -> EncodedData:
    """The same, with the pictures in the space of the texts: `features` and `second` may be compared as they are.

    Raises:
        InputError: the encoder has no common space, or as `with_features` does.
    """
    encoder = open_encoder(encoding.encoder, device=encoding.device)
    if not encoder.joint:
        raise InputError(
            f"the encoder '{encoder.name}' has no common space for pictures and texts, so it cannot judge pairs without"
            " training; add --train, or choose one that has (mispair encoders)"
        )
    encoded = encode_data(config, replace(encoding, cells=False, texts=True), tell)
    assert encoded.config.joint is not None
    joint = Path(encoded.config.joint)
    write_text(joint.with_name("joint_ids.txt"), "".join(f"{name}\n" for name in encoded.kept.image_ids or ()))
    config = encoded.config.model_copy(update={"features": str(joint), "joint": None})
    return replace(encoded, config=config)


def _wants_texts(encoding: Encoding, encoder: Encoder, source: Source) -> bool:
    if encoding.texts is not None:
        return encoding.texts
    return "vector" in encoder.texts and source.captions is not None and not encoding.cells


def open_raw(config: DataConfig) -> Source:
    """All pairs of data with pictures. Raises InputError where none were found, or some are missing and refused."""
    source = open_pairing(config.model_copy(update={"limit": None}), "all")
    if source.pictures is None and on_the_web(source.image_ids or ()):
        raise InputError(
            f"{config.path} names pictures on the web, which are not fetched; download them with img2dataset and give"
            " the folder it writes as DATA, or say where they are: --images"
        )
    if source.pictures is None:
        raise InputError(
            f"{config.path} names no pictures that were found; expected some to encode, so say where they are: --images"
        )
    refuse_left_out(config, source)
    return source


def _encode_pictures(
    config: DataConfig, encoder: Encoder, pictures: Pictures, output: str, encoding: Encoding, tell: Tell
) -> Encodings:
    # Cells bring the vector along: it costs nothing while the network runs, and an audit or a search will ask for it.
    outputs = (output, "vector") if output == "cells" and "vector" in encoder.images else (output,)
    keys: Sequence[bytes | None] | None = None
    how: dict[str, Any] = {"total": len(pictures), "batch": encoding.batch, "workers": encoding.workers}
    if config.missing == "refuse":  # one broken picture is the end: known before hours of encoding, not after them
        tell_decoding = _teller(tell, "looking at pictures", len(pictures))
        keys, failed = find_undecodable(encoder, _items(pictures), cache_folder(), outputs, **how, tell=tell_decoding)
        _refuse_failed(config, failed, len(pictures))
    encoding_pictures = _teller(tell, "encoding pictures", len(pictures))
    return encode_pictures(encoder, _items(pictures, keys), cache_folder(), outputs, **how, tell=encoding_pictures)


def _items(pictures: Pictures, keys: Sequence[bytes | None] | None = None) -> Iterator[PictureItem]:
    for row, name in enumerate(pictures.names):
        yield PictureItem(name, partial(pictures.read, row), None if keys is None else keys[row])


def _teller(tell: Tell, what: str, total: int) -> Callable[[EncodingProgress], None]:
    return lambda progress: tell(what, progress.done, progress.total or total)


def _refuse_failed(config: DataConfig, failed: Sequence[Failure], pictures: int) -> None:
    shown = ", ".join(f"{failure.name}: {failure.reason}" for failure in failed[:2]) + (" ..." if failed[2:] else "")
    if len(failed) == pictures:
        raise InputError(f"{config.path}: none of {counted(len(failed), 'picture')} can be decoded ({shown})")
    if failed and config.missing == "refuse":
        raise InputError(
            f"{config.path}: {counted(len(failed), 'picture')} cannot be decoded ({shown}); replace, or leave the pairs"
            " out with --missing skip"
        )


def _write_pictures(
    done: Encodings, output: str, encoder: Encoder, ids: list[str], failures: Sequence[Failure], folder: Path | None
) -> Path:
    """The rows of these pictures as an array of their own, with a list of ids and one of the pictures it does without;
    in the cache it is made once.
    """
    broken = next((name for name in ids if "\n" in name or name != name.strip()), None)
    if broken is not None:
        raise InputError(f"the image id {broken!r} holds a line break or spaces at its ends; rename it")
    good = [position for position, key in enumerate(done.keys) if key is not None]
    keys = b"".join(key or b"-" for key in done.keys)
    without = [f"{failure.name}: {failure.reason}" for failure in failures]
    folder = folder or _folder(encoder, [output, hashlib.sha256(keys).hexdigest(), *ids, *without])
    files = EmbeddedFolder(folder)
    features = files.features_file
    if not features.exists():
        if failures:
            write_failed(files.failed_file, failures)
        write_text(files.ids_file, "".join(f"{ids[position]}\n" for position in good))
        array, rows = done.tables[output].array(), done.rows(output)[good]
        blocks = some_rows(array.__getitem__, rows)
        write_atomically(features, lambda path: write_blocks(path, (len(rows), *array.shape[1:]), array.dtype, blocks))
    return features


def _write_texts(encoder: Encoder, source: Source, tell: Tell, folder: Path | None) -> Path:
    """(listed, d): a vector for every text of the data set; zeros for those whose picture is missing."""
    assert source.captions is not None, "asked before anything is encoded"
    assert source.positions is not None, "pictures come with a list of pairs"
    tell_texts = _teller(tell, "encoding captions", len(source.captions))
    done = encode_texts(encoder, source.captions, cache_folder(), "vector", total=len(source.captions), tell=tell_texts)
    keys = b"".join(key or b"-" for key in done.keys)
    positions = source.positions.tobytes()
    parts = ["texts", hashlib.sha256(keys + positions).hexdigest(), str(source.listed)]
    path = EmbeddedFolder(folder or _folder(encoder, parts)).texts_file
    if not path.exists():
        vectors = np.zeros((source.listed or len(source.image_of_text), *done.tables["vector"].shape), np.float32)
        vectors[source.positions] = done.tables["vector"].array()[done.rows("vector")]
        write_atomically(path, partial(_save, [vectors]))
    return path


def _write_joint(encoder: Encoder, features: Path) -> Path:
    """The pictures of a file of vectors in the space of the encoder's texts, beside it."""
    joint = EmbeddedFolder(features.parent).joint_file
    if not joint.exists():
        vectors = open_array(features, "vectors of pictures")
        blocks = [encoder.in_text_space(np.array(vectors[k : k + _ROWS])) for k in range(0, len(vectors), _ROWS)]
        write_atomically(joint, partial(_save, blocks))
    return joint


def _folder(encoder: Encoder, parts: list[str]) -> Path:
    key = json.dumps([encoder.fingerprint, *parts]).encode(errors="surrogatepass")
    return cache_folder() / "data" / hashlib.sha256(key).hexdigest()[:32]


def _save(blocks: list[NDArray[np.float32]], path: Path) -> None:
    with path.open("wb") as out:
        np.save(out, np.concatenate(blocks), allow_pickle=False)
