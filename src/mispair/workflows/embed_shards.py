"""Folders that `mispair embed --shard i/n` wrote, made one: the same files that one process would have written."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mispair.atomic import make_atomically, write_text
from mispair.data.embedded_folder import EmbeddedFolder
from mispair.data.files.npy import open_array
from mispair.data.files.reading import plain_file
from mispair.data.source import Source
from mispair.errors import InputError

NAME = "shard.json"
POSITION = "mispair_position"  # column of a shard's table: the place of each pair in the whole set
_ROWS = 1024


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


def merge_embedded(folders: list[Path], out: Path) -> tuple[int, int]:
    """Write the whole of the shards into the new folder `out`: pairs in the order of the data. -> pairs, pictures.

    Raises InputError where shards are missing or twice there, or are of other data or another encoder; nothing is
    written then.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not folders:
        raise InputError("name the folders of all shards to make one of: mispair embed --shard i/n writes them")
    parts = sorted((_read(folder) for folder in folders), key=lambda part: part.shard)
    _refuse_unfit(parts)
    with make_atomically(out) as hidden:
        whole = hidden / "features"
        whole.mkdir()
        merged = EmbeddedFolder(whole)
        table = pa.concat_tables([pq.read_table(part.files.table_file) for part in parts])
        order = np.argsort(table[POSITION].to_numpy(), kind="stable")
        pq.write_table(table.take(pa.array(order)).drop_columns([POSITION]), merged.table_file)
        pictures = _join([part.files.features_file for part in parts], merged.features_file, None)
        ids = "".join(part.files.ids_file.read_text(encoding="utf-8") for part in parts)
        write_text(merged.ids_file, ids)
        if all(part.files.joint_file.exists() for part in parts):
            _join([part.files.joint_file for part in parts], merged.joint_file, None)
        if parts[0].files.texts_file.exists():
            _join([part.files.texts_file for part in parts], merged.texts_file, order)
        failed = [part.files.failed_file for part in parts if part.files.failed_file.exists()]
        if failed:
            lines = [path.read_text(encoding="utf-8").splitlines(keepends=True) for path in failed]
            write_text(merged.failed_file, "".join([lines[0][0], *(line for part in lines for line in part[1:])]))
        about = parts[0].about | {name: sum(part.about[name] for part in parts) for name in ("pictures", "failed")}
        write_text(merged.about_file, json.dumps(about, indent=2) + "\n")
        os.rename(whole, out)
    return len(order), pictures


def _read(folder: Path) -> _EmbeddedShard:
    path = plain_file(folder / NAME, "what a shard of an embedding says of itself")
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        about = json.loads(EmbeddedFolder(folder).about_file.read_text(encoding="utf-8"))
        return _EmbeddedShard(folder, about, int(said["shard"]), int(said["of"]), str(said["data"]))
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{folder} is damaged; embed this shard again") from None


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


def _join(parts: list[Path], whole: Path, order: NDArray[np.int64] | None) -> int:
    """The rows of all arrays one after the other, or in `order`, as one array; a few are in memory at a time."""
    arrays = [open_array(part, "the vectors of a shard") for part in parts]
    starts = np.concatenate([[0], np.cumsum([len(array) for array in arrays])])
    total = int(starts[-1])
    shape = (total, *arrays[0].shape[1:])
    target = np.lib.format.open_memmap(whole, mode="w+", dtype=arrays[0].dtype, shape=shape)
    for at in range(0, total, _ROWS):
        rows = np.arange(at, min(at + _ROWS, total)) if order is None else order[at : at + _ROWS]
        part = np.searchsorted(starts, rows, "right") - 1
        for k in np.unique(part).tolist():
            mine = part == k
            target[at + np.flatnonzero(mine)] = arrays[k][rows[mine] - starts[k]]
    target.flush()
    return total
