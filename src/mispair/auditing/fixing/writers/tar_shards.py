"""Tar shards: samples leave, captions change, every other byte is copied as it lies; nothing is unpacked."""

from __future__ import annotations

import copy
import json
import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from mispair.auditing.fixing.judged_data import JudgedData
from mispair.auditing.fixing.slots import Slots, WrittenPairs, slots_by_position, slots_of_row
from mispair.auditing.fixing.writers.arrow_rows import rewrite_parquet
from mispair.auditing.fixing.writers.feature_files import write_second_side, write_weights
from mispair.auditing.fixing.writers.json_style import dump_like
from mispair.auditing.fixing.writers.protocol import link_or_copy, reading_options
from mispair.data.config import DataConfig
from mispair.data.files.columns import CAPTION
from mispair.data.files.parquet import parquet_names
from mispair.data.files.picture_tar import headers
from mispair.data.files.tar_names import is_tar_pattern
from mispair.data.readers.tar_shards import (
    caption_key,
    captions_in,
    read_samples,
    sample_of,
    shards_of,
    whole_text,
)
from mispair.errors import InputError

_PIECE = 1 << 20
_BLOCK = tarfile.BLOCKSIZE


class TarShardsWriter:
    """The same shards, with the tables of img2dataset beside them where there are some."""

    weights = "weights"

    def home(self, config: DataConfig) -> Path | None:
        path = Path(config.path)
        return path if path.is_dir() else shards_of(config)[0].parent

    def files(self, config: DataConfig) -> list[str]:
        path = Path(config.path)
        if is_tar_pattern(config.path):
            tars = shards_of(config)
            return sorted(file.name for tar in tars for file in (tar, tar.with_suffix(".parquet")) if file.is_file())
        if not path.is_dir():
            return [path.name]
        return sorted(file.name for file in path.iterdir() if file.is_file() and file.name[0] != ".")

    def write(self, data: JudgedData, pairs: WrittenPairs, out: Path) -> None:
        slots = slots_by_position(data, pairs)
        tars = shards_of(data.config)
        if len({tar.parent for tar in tars}) > 1:
            raise InputError(
                f"{data.config.path} names tars of several folders; expected one, so fix each of them alone"
            )
        column = data.config.columns.caption
        changes = _changes(tars, slots, column)
        home, there = tars[0].parent, self.files(data.config)
        for number, tar in enumerate(tars):
            table = tar.with_suffix(".parquet")
            listed = table.name in there
            if not changes[number]:
                for file in (tar, table) if listed else (tar,):
                    link_or_copy(file, out / file.name)
                continue
            _write_tar(tar, changes[number], out / tar.name, column)
            if listed:
                _write_listing(table, changes[number], out / table.name)
        done = {path.name for path in out.iterdir()}
        for name in there:
            if name not in done:
                link_or_copy(home / name, out / name)
        write_second_side(data, slots, pairs, out)
        write_weights(slots, data.source.listed, out / f"{self.weights}.npy")

    def arguments(self, config: DataConfig, out: Path) -> list[str]:
        path = Path(config.path)
        one = not path.is_dir() and not is_tar_pattern(config.path)
        return [str(out / path.name if one else out), *reading_options(config)]


@dataclass(frozen=True)
class _Change:
    """What becomes of a sample: its captions before and after. None: it leaves."""

    before: list[str]
    after: list[str] | None
    said: bool  # whether the sample has a caption to be changed; else one is added


def _changes(tars: tuple[Path, ...], slots: Slots, column: str | None) -> list[dict[str, _Change]]:
    """By shard and key, the samples that do not stay as they are."""
    changes: list[dict[str, _Change]] = [{} for _ in tars]
    place = 0
    for sample in read_samples(tars, column=column):
        if sample.picture is None:
            continue
        before = sample.texts or [""]
        row_slots = slots_of_row(slots, range(place, place + len(before)))
        place += len(before)
        if row_slots is not None and any(slot.changes for slot in row_slots):
            pairs = zip(before, row_slots, strict=True)
            after = [old if slot.caption is None else slot.caption for old, slot in pairs if slot.keep]
            changes[sample.tar][sample.key] = _Change(before, after or None, sample.texts is not None)
    return changes


def _write_tar(path: Path, changes: dict[str, _Change], out: Path, column: str | None) -> None:
    with path.open("rb") as source, out.open("wb") as target:
        at = 0
        added: set[str] = set()
        for info, start, stop in _members(path):
            key, ending = sample_of(info.name.removeprefix("./"))
            change = changes.get(key)
            if change is None:
                continue
            _copy(source, target, at, start)
            at = start
            if change.after is None:
                at = stop
            elif not change.said:
                if column is not None:
                    raise InputError(
                        f"{path.name}, {key} has no {column!r} to write a caption into; add it there first"
                    )
                if key not in added:  # a picture of which nothing was said gets its caption before it
                    added.add(key)
                    name = f"{info.name[: len(info.name) - len(ending) - 1]}.txt"
                    _add(target, _renamed(info, name), change.after[0].encode())
            else:
                source.seek(info.offset_data)
                given = source.read(info.size) if captions_in(ending) else b""
                made = _caption_file(given, ending, change, f"{path.name}, {info.name}", column)
                if made is not None:
                    _add(target, info, made)
                    at = stop
        _copy(source, target, at, None)


def _caption_file(given: bytes, ending: str, change: _Change, where: str, column: str | None) -> bytes | None:
    """The new content of a caption's file; None where this is none, or says something else."""
    assert change.after is not None
    if captions_in(ending) == "text":
        if column is not None:
            return None
        if len(change.after) > 1:
            raise InputError(f"{where} has room for one caption, and would have to show {len(change.after)}")
        return change.after[0].encode() + given[len(given.rstrip()) :]
    if captions_in(ending) != "json":
        return None
    try:
        value = json.loads(given)
    except (ValueError, RecursionError):
        return None
    name = caption_key(value, column)
    if name is None:
        return None
    several = value[name] if isinstance(value[name], list) else [value[name]]
    if [whole_text(str(one)) for one in several] != change.before:
        return None
    if len(change.after) > 1 and not isinstance(value[name], list):
        raise InputError(f"{where} has room for one caption, and would have to show {len(change.after)}")
    return dump_like({**value, name: change.after if isinstance(value[name], list) else change.after[0]}, given)


def _members(path: Path) -> Iterator[tuple[tarfile.TarInfo, int, int]]:
    """The ordinary files of a tar: where each begins with its headers, and where its last block ends."""
    size = os.stat(path).st_size
    try:
        with tarfile.open(path, "r:") as tar:
            for info in headers(tar):
                stop = info.offset_data + -(-info.size // _BLOCK) * _BLOCK
                if not info.isreg() or info.issparse():
                    continue
                if stop > size:
                    return
                yield info, info.offset, stop
    except tarfile.TarError:
        return  # what follows is damaged, and stays as it is


def _renamed(info: tarfile.TarInfo, name: str) -> tarfile.TarInfo:
    made = copy.copy(info)
    made.name = name
    return made


def _add(target: IO[bytes], info: tarfile.TarInfo, content: bytes) -> None:
    made = copy.copy(info)
    made.size = len(content)
    made.pax_headers = {name: value for name, value in info.pax_headers.items() if name not in ("size", "path")}
    target.write(
        made.tobuf(tarfile.PAX_FORMAT if info.pax_headers else tarfile.GNU_FORMAT, tarfile.ENCODING, "surrogateescape")
    )
    target.write(content + b"\0" * (-len(content) % _BLOCK))


def _copy(source: IO[bytes], target: IO[bytes], start: int, stop: int | None) -> None:
    source.seek(start)
    left = None if stop is None else stop - start
    while left is None or left > 0:
        piece = source.read(_PIECE if left is None else min(_PIECE, left))
        if not piece:
            return
        target.write(piece)
        left = None if left is None else left - len(piece)


def _write_listing(path: Path, changes: dict[str, _Change], out: Path) -> None:
    """The table that img2dataset writes beside a shard: a row per key, those of failed downloads too."""
    names = parquet_names(path)
    caption = next((name for name in CAPTION if name in names), None)
    if "key" not in names:
        link_or_copy(path, out)
        return

    def decide(row: int, values: dict[str, object]) -> dict[str, object] | None:
        change = changes.get(str(values["key"]))
        if change is None:
            return values
        if change.after is None:
            return None
        return values if caption is None else {**values, caption: change.after[0]}

    rewrite_parquet(path, ["key", *([caption] if caption else [])], decide, out)
