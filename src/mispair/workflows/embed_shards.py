"""Folders that `mispair embed --shard i/n` wrote, made one: the same files that one process would have written."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mispair.atomic import make_atomically, write_text
from mispair.data.embedded_folder import EmbeddedFolder
from mispair.data.files.npy import open_array
from mispair.data.files.npy_blocks import some_rows, write_blocks
from mispair.data.files.reading import plain_file, read_bytes
from mispair.data.source import Source
from mispair.errors import InputError
from mispair.ordinary_file import read_ordinary

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "shard.json"
POSITION = "mispair_position"  # column of a shard's table: the place of each pair in the whole set
_MOST_SHARDS = 1 << 20
_COUNTS = ("pictures", "failed")  # of encoder.json, summed over the shards


def part_of(source: Source, shard: int, of: int) -> Source:
    """The images of one shard and their texts; images stay in order and none is in two shards."""
    count = source.image_count
    first, last = count * (shard - 1) // of, count * shard // of
    if first == last:
        raise InputError(f"{source.name} has {count:,} images, too few for {of} shards; use fewer")
    return source.images_between(first, last)


def write_shard(folder: Path, shard: tuple[int, int], whole: Source) -> None:
    """What tells which shard of which data this is."""
    digest = hashlib.sha256(np.ascontiguousarray(whole.image_of_text, "<i8").tobytes())
    for texts in (whole.image_ids or (), whole.captions or ()):
        digest.update("\n".join(texts).encode(errors="surrogatepass") + b"\0")
    said = {"shard": shard[0], "of": shard[1], "data": digest.hexdigest()}
    write_text(folder / NAME, json.dumps(said) + "\n")


@dataclass(frozen=True)
class _EmbeddedShard:
    folder: Path
    about: dict[str, Any]  # what made it
    shard: int
    of: int
    data: str  # what tells the whole set from another

    @property
    def files(self) -> EmbeddedFolder:
        return EmbeddedFolder(self.folder)

    def damaged(self, file: Path, why: str) -> InputError:
        return InputError(f"{file} {why}; embed this shard again: mispair embed ... --shard {self.shard}/{self.of}")


def merge_embedded(folders: list[Path], out: Path) -> tuple[int, int]:
    """Write the whole of the shards into the new folder `out`: pairs in the order of the data. -> pairs, pictures.

    Raises InputError where shards are missing or twice there, are damaged, or are of other data or another encoder;
    nothing is written then.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not folders:
        raise InputError("name the folders of all shards to make one of: mispair embed --shard i/n writes them")
    parts = sorted((_read(folder) for folder in folders), key=lambda part: part.shard)
    _refuse_unfit(parts)
    tables = [_read_table(part) for part in parts]
    _refuse_other_columns(parts, tables)
    table = pa.concat_tables(tables)
    order = _order(parts, tables)
    ids = [_read_text(part, part.files.ids_file) for part in parts]
    pictures = [text.count("\n") for text in ids]
    arrays = {"features_file": _read_arrays(parts, "features_file", pictures)}
    if any(part.files.joint_file.exists() for part in parts):
        arrays["joint_file"] = _read_arrays(parts, "joint_file", pictures)
    if any(part.files.texts_file.exists() for part in parts):
        arrays["texts_file"] = _read_arrays(parts, "texts_file", [len(table) for table in tables])
    failed = [_read_text(part, part.files.failed_file) for part in parts if part.files.failed_file.exists()]
    with make_atomically(out) as hidden:
        whole = hidden / "features"
        whole.mkdir()
        merged = EmbeddedFolder(whole)
        pq.write_table(table.take(pa.array(order)).drop_columns([POSITION]), merged.table_file)
        write_text(merged.ids_file, "".join(ids))
        for name, own in arrays.items():
            _join(own, getattr(merged, name), order if name == "texts_file" else np.arange(sum(pictures)))
        if failed:
            lines = [text.splitlines(keepends=True) for text in failed]
            write_text(merged.failed_file, "".join([*lines[0][:1], *(line for part in lines for line in part[1:])]))
        about = parts[0].about | {name: sum(part.about[name] for part in parts) for name in _COUNTS}
        write_text(merged.about_file, json.dumps(about, indent=2) + "\n")
        os.rename(whole, out)
    return len(order), sum(pictures)


def _read(folder: Path) -> _EmbeddedShard:
    path = plain_file(folder / NAME, "what a shard of an embedding says of itself")
    about_file = plain_file(EmbeddedFolder(folder).about_file, "what made a shard of an embedding")
    try:
        said = json.loads(read_ordinary(path))
        about = json.loads(read_ordinary(about_file))
        read = _EmbeddedShard(folder, dict(about), int(said["shard"]), int(said["of"]), str(said["data"]))
        if not all(type(about[name]) is int for name in _COUNTS) or not 1 <= read.shard <= read.of <= _MOST_SHARDS:
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise InputError(f"{path} or {about_file.name} beside it is damaged; embed this shard again") from None
    return read


def _read_table(part: _EmbeddedShard) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = plain_file(part.files.table_file, "the pairs of a shard")
    try:
        table = pq.read_table(file)
    except (OSError, pa.ArrowException):
        raise part.damaged(file, "is damaged") from None
    names = table.column_names
    if len(set(names)) < len(names) or POSITION not in names:
        raise part.damaged(file, f"has not the columns of a shard, {POSITION} once among them")
    if not pa.types.is_integer(table[POSITION].type) or table[POSITION].null_count:
        raise part.damaged(file, f"has no numbers in its column {POSITION}")
    return table


def _refuse_other_columns(parts: list[_EmbeddedShard], tables: list[pa.Table]) -> None:
    usual = Counter(table.schema.remove_metadata() for table in tables).most_common(1)[0][0]
    for part, table in zip(parts, tables, strict=True):
        if not table.schema.equals(usual):
            raise part.damaged(part.files.table_file, "has other columns than the other shards")


def _order(parts: list[_EmbeddedShard], tables: list[pa.Table]) -> NDArray[np.int64]:
    """The rows of all tables, counted through, in the order of the data."""
    places = np.concatenate([table[POSITION].to_numpy() for table in tables])
    order = np.argsort(places, kind="stable")
    wrong = order[(places[order] < 0) | (np.diff(places[order], prepend=-1) == 0)]
    if len(wrong):
        part = parts[int(np.searchsorted(np.cumsum([len(table) for table in tables]), wrong[0], "right"))]
        raise part.damaged(part.files.table_file, f"has a pair at place {places[wrong[0]]}, which is none or taken")
    return order


def _read_text(part: _EmbeddedShard, file: Path) -> str:
    try:
        return read_bytes(file, "the names of a shard's pictures").decode()
    except UnicodeDecodeError:
        raise part.damaged(file, "is not UTF-8") from None


def _read_arrays(parts: list[_EmbeddedShard], name: str, rows: list[int]) -> list[NDArray[Any]]:
    """One array of every shard, with so many rows each, alike but for that."""
    files = [getattr(part.files, name) for part in parts]
    arrays = [open_array(file, "the vectors of a shard") for file in files]
    usual = Counter((array.shape[1:], array.dtype) for array in arrays).most_common(1)[0][0]
    for part, file, array, count in zip(parts, files, arrays, rows, strict=True):
        if array.dtype.kind != "f" or array.ndim < 2 or (array.shape[1:], array.dtype) != usual:
            raise part.damaged(file, f"holds {array.shape} {array.dtype}, other vectors than the other shards")
        if len(array) != count:
            raise part.damaged(file, f"has {len(array):,} rows where the shard has {count:,}")
    return arrays


def _refuse_unfit(parts: list[_EmbeddedShard]) -> None:
    first = parts[0]
    for part in parts[1:]:
        if part.data != first.data:
            raise InputError(f"{part.folder} and {first.folder} are shards of different data; merge those of one")
        if part.about.get("fingerprint") != first.about.get("fingerprint"):
            raise InputError(
                f"{part.folder} and {first.folder} were made by different encoders; embed one of them again"
            )
        if part.of != first.of:
            raise InputError(
                f"{part.folder} is one of {part.of} shards and {first.folder} one of {first.of}; they overlap"
            )
    numbers = [part.shard for part in parts]
    twice = sorted({number for number in numbers if numbers.count(number) > 1})
    if twice:
        raise InputError(f"shard {twice[0]}/{first.of} is there twice; name every shard once")
    missing = sorted(set(range(1, first.of + 1)) - set(numbers))
    if missing:
        raise InputError(f"shards are missing: {', '.join(f'{number}/{first.of}' for number in missing[:5])}")


def _join(arrays: list[NDArray[Any]], whole: Path, order: NDArray[np.int64]) -> None:
    """The rows of all arrays, counted through, in `order`, as one array; a few are in memory at a time."""
    starts = np.concatenate([[0], np.cumsum([len(array) for array in arrays])])
    shape, dtype = (len(order), *arrays[0].shape[1:]), arrays[0].dtype

    def take(rows: NDArray[np.int64]) -> NDArray[Any]:
        block = np.empty((len(rows), *shape[1:]), dtype)
        part = np.searchsorted(starts, rows, "right") - 1
        for k in np.unique(part).tolist():
            mine = part == k
            block[mine] = arrays[k][rows[mine] - starts[k]]
        return block

    write_blocks(whole, shape, dtype, some_rows(take, order))
