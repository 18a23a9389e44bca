"""webdataset tar shards (0001.jpg with 0001.txt or 0001.json inside), and img2dataset output: tars beside Parquets."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from mispair.counted import counted
from mispair.data.config import DataConfig
from mispair.data.files.columns import CAPTION
from mispair.data.files.json_lines import is_text
from mispair.data.files.picture_folder import is_picture_name
from mispair.data.files.picture_tar import Member, TarPlace, TarStore, list_tar
from mispair.data.files.reading import decode_line, is_utf8
from mispair.data.files.rows import TABLES
from mispair.data.files.tar_names import list_tars, tars_named
from mispair.data.picture_store import PictureIndex
from mispair.data.readers.pair_list import PairList
from mispair.data.readers.pair_list_reader import PairListReader
from mispair.data.readers.picture_files import no_captions
from mispair.data.readers.split_names import splits_in_names
from mispair.data.source import Finding
from mispair.errors import InputError
from mispair.pictures.decode import Broken

PLAIN = ("txt", "caption", "text")  # endings of captions as they are
_MOST_TEXT = 4 << 20  # bytes of a caption or its JSON


class TarShards(PairListReader):
    """One .tar, a pattern of them, or a folder. Members that share a name up to its first dot are one sample."""

    def recognises(self, config: DataConfig) -> bool:
        path = Path(config.path)
        if path.suffix.lower() == ".tar":
            return True
        if not os.path.isdir(path):
            return False
        tars = list_tars(path)
        tables = {name for name in os.listdir(path) if name.lower().endswith(TABLES) and name[0] != "."}
        return bool(tars) and tables <= {f"{tar.stem}.parquet" for tar in tars}  # those of img2dataset say the same

    def read(self, config: DataConfig) -> PairList:
        return _read(config)


def shards_of(config: DataConfig) -> tuple[Path, ...]:
    """The tars, in the order in which they are read."""
    return tuple(tars_named(config.path))


def _read(config: DataConfig) -> PairList:
    path, tars = Path(config.path), shards_of(config)
    stamps = tuple((os.stat(tar).st_size, os.stat(tar).st_mtime_ns) if tar.exists() else (0, 0) for tar in tars)
    return _read_shards(path, tars, stamps, config.columns.caption)


@lru_cache(maxsize=1)
def _read_shards(
    path: Path, tars: tuple[Path, ...], stamps: tuple[tuple[int, int], ...], column: str | None
) -> PairList:
    """The splits of one data set are opened one after the other: read the captions once."""
    store = TarStore(tars)
    called = _names_of(tars)
    splits_of = splits_in_names([tar.name for tar in tars])
    places: dict[str, TarPlace] = {}
    images: list[str] = []
    captions: list[str] = []
    splits: list[str] = []
    silent: list[str] = []
    lost: list[str] = []
    latin: list[str] = []
    for sample in read_samples(tars, store, column):
        name = sample.key if len(tars) == 1 else f"{called[sample.tar]}/{sample.key}"
        if sample.picture is None:
            lost.append(name)
            continue
        places[name] = (sample.tar, sample.picture.offset, sample.picture.size)
        if sample.texts is None:
            silent.append(name)
        if sample.latin:
            latin.append(name)
        texts = sample.texts or [""]
        images += [name] * len(texts)
        captions += texts
        splits += [splits_of[sample.tar] if splits_of else "all"] * len(texts)
    if not images:
        raise InputError(f"{path} holds no picture; expected shards with .jpg, .png or .webp and .txt or .json members")
    captioned = len(silent) < len(places)
    findings = [*_damaged_or_repeated(tars), *_of_captions(silent if captioned else [], lost, latin)]
    rows = np.arange(len(images))
    return PairList(
        path=path,
        images=images,
        captions=captions if captioned else None,
        splits=splits if splits_of else None,
        ids=None,
        lines=rows + 1,
        rows=rows,
        notes=() if captioned else (no_captions(path),),
        findings=tuple(findings),
        pictures=PictureIndex(store, places, {}, str(path)),
    )


def _damaged_or_repeated(tars: tuple[Path, ...]) -> Iterator[Finding]:
    """Tars that cannot be read to their end, and names that stand in one of them more than once."""
    for tar in tars:
        listing = list_tar(tar)
        if listing.trouble:
            yield Finding("damaged tar", "all", 1, f"{tar.name} is {listing.trouble}; copy it again")
        again = [name for name, times in Counter(member.name for member in listing.members).items() if times > 1]
        if again:
            text = f"{tar.name}: {counted(len(again), 'name')} (first {again[0]!r}) more than once; the last one counts"
            yield Finding("repeated names", "all", len(again), text)


def _of_captions(silent: list[str], lost: list[str], latin: list[str]) -> Iterator[Finding]:
    """By the names of their samples: pictures without a caption, captions without a picture, captions not in UTF-8."""
    if silent:
        text = f"{counted(len(silent), 'picture')} (first {silent[0]!r}) without .txt or .json: an empty caption"
        yield Finding("pictures without a caption", "all", len(silent), text)
    if lost:
        text = f"{counted(len(lost), 'sample')} (first {lost[0]!r}) with a caption and no picture; not used"
        yield Finding("captions without a picture", "all", len(lost), text)
    if latin:
        text = (
            f"{counted(len(latin), 'caption')} (first of {latin[0]!r}) not in UTF-8; read as Latin-1, or without what"
            " is broken, so save as UTF-8"
        )
        yield Finding("bytes that are not UTF-8", "all", len(latin), text)


def _names_of(tars: tuple[Path, ...]) -> list[str]:
    """What the shards are called before their samples: as their files, with the folders where two are called alike."""
    stems = [tar.stem for tar in tars]
    if len(set(stems)) == len(stems):
        return stems
    home = os.path.commonpath([os.path.abspath(tar.parent) for tar in tars])
    return [os.path.relpath(os.path.abspath(tar.with_suffix("")), home) for tar in tars]


@dataclass(frozen=True)
class Sample:
    """The members of a tar that share a name up to its first dot."""

    tar: int  # which
    key: str
    picture: Member | None
    texts: list[str] | None  # None where it has no caption
    latin: bool = False  # whether its caption is no UTF-8


def read_samples(tars: tuple[Path, ...], store: TarStore | None = None, column: str | None = None) -> Iterator[Sample]:
    """The samples of all tars, in order, with their captions; pictures are not read.

    `column`: the key of the JSON that holds the caption; None: the text beside the picture, else the usual keys.
    """
    store = store or TarStore(tars)
    for number, tar in enumerate(tars):
        samples: dict[str, dict[str, Member]] = {}
        for member in list_tar(tar).members:
            key, ending = sample_of(member.name)
            if key:
                samples.setdefault(key, {})[ending] = member
        for key, files in samples.items():
            picture = next((file for file in files.values() if is_picture_name(file.name)), None)
            texts, latin = _texts(store, number, files, column)
            yield Sample(number, key, picture, texts, latin)


def sample_of(name: str) -> tuple[str, str]:
    """Sample and ending of a member: a/0001.jpg is ("a/0001", "jpg"); two empty strings where it is of none."""
    folder, _, base = name.rpartition("/")
    stem, dot, ending = base.partition(".")
    if not dot or not stem:
        return "", ""
    return (f"{folder}/{stem}" if folder else stem), ending.lower()


def captions_in(ending: str) -> str | None:
    """How a member with this ending says its caption: "text", "json" or None."""
    return "text" if ending in PLAIN else "json" if ending == "json" else None


def caption_key(value: Any, column: str | None = None) -> str | None:
    """Under which key of a sample's JSON its caption stands: `column`, or a usual name in any case; None where none."""
    if not isinstance(value, dict):
        return None
    if column is not None:
        return column if value.get(column) else None
    named = {name.lower(): name for name, said in reversed(value.items()) if said}
    return next((named[name] for name in CAPTION if name in named), None)


def _texts(store: TarStore, tar: int, files: dict[str, Member], column: str | None) -> tuple[list[str] | None, bool]:
    """The captions of a sample, None where it has none; and whether they are no UTF-8."""
    for ending in PLAIN if column is None else ():
        if ending in files:
            content = _small(store, tar, files[ending])
            return (None, False) if content is None else ([decode_line(content).strip()], not is_utf8(content))
    return _texts_in_json(store, tar, files["json"], column) if "json" in files else (None, False)


def _texts_in_json(store: TarStore, tar: int, member: Member, column: str | None) -> tuple[list[str] | None, bool]:
    content = _small(store, tar, member)
    try:
        value: Any = json.loads(content or b"")
    except (ValueError, RecursionError):
        return None, False
    name = caption_key(value, column)
    said = None if name is None else value[name]
    several = said if isinstance(said, list) else [said]
    texts = [whole_text(text) for text in several if isinstance(text, str)]
    return (texts, not is_text(said)) if texts and len(texts) == len(several) else (None, False)


def whole_text(text: str) -> str:
    """A caption that JSON spells, with U+FFFD for each half of a character in it."""
    return text.strip().encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _small(store: TarStore, tar: int, member: Member) -> bytes | None:
    if member.size > _MOST_TEXT:
        return None
    content = store.read((tar, member.offset, member.size))
    return None if isinstance(content, Broken) else content
