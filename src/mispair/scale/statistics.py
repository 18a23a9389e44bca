"""What a shard tells of its pairs: counts that add up to the counts of the whole, and what was measured of each pair.

Counts are integers on a grid that all shards share, so that adding them up in any order and in any number of shards
gives the very same sum. Letters: K bins, G images drawn to see whether their pairs are wrong together, n pairs of the
shard, H crowded captions.
"""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mispair.atomic import write_atomically
from mispair.data.files.reading import plain_file
from mispair.errors import InputError
from mispair.progress import Tell
from mispair.scale.evidence import Measure, blocks_of
from mispair.scale.frame import BINS, Frame, crowded_names
from mispair.scale.hashing import uniform
from mispair.scale.vectors import PairVectors

Ints = NDArray[np.int64]

_IMAGES = 1 << 16  # drawn by a hash, about, of those with several captions
_VERSION = 1
_BROKEN = (
    *(OSError, ValueError, KeyError, TypeError, EOFError, AttributeError, RecursionError, NotImplementedError),
    *(MemoryError, OverflowError, struct.error, zipfile.BadZipFile, zlib.error),
)
PER_PAIR = ("suspicion", "score", "caption_above", "image_above", "crowd")


@dataclass(frozen=True, eq=False)
class Statistics:
    """Of one shard, or of several that follow one another."""

    key: str  # of the frame
    pairs: int  # of the whole set
    start: int  # rows of the shard: from here ...
    stop: int  # ... to here, this one not
    given: Ints  # (K,) pairs by suspicion
    repaired: Ints  # (K,) re-paired ones
    near_given: Ints  # (K,) the same by score and ranks alone
    near_repaired: Ints  # (K,)
    image: Ints  # (G,) images drawn, ascending
    image_pairs: Ints  # (G,) their pairs ...
    image_suspects: Ints  # (G,) ... of which so many are more suspicious than the median re-paired one
    crowded: Ints  # (H,) pairs that show each crowded caption
    suspicion: NDArray[np.float64]  # (n,)
    score: NDArray[np.float32]  # (n,)
    caption_above: NDArray[np.int32]  # (n,)
    image_above: NDArray[np.int32]  # (n,)
    crowd: NDArray[np.int16]  # (n,) which crowded caption it shows, -1: none


def gather(data: PairVectors, frame: Frame, tell: Tell, shard: int = 1, of: int = 1) -> Statistics:
    """The statistics of shard `shard` of `of`, counted from 1."""
    ranges = blocks_of(len(data), shard, of)
    start, stop = (ranges[0][0], ranges[-1][1]) if ranges else (0, 0)
    count = stop - start
    counts = np.zeros((4, BINS), np.int64)
    suspicion, score = np.empty(count), np.empty(count, np.float32)
    above = np.empty((2, count), np.int32)
    crowd = np.full(count, -1, np.int16)
    number = {name: k for k, name in enumerate(frame.crowded)}
    for rows, measured in Measure(frame).blocks(data, ranges):
        here = slice(int(rows[0]) - start, int(rows[-1]) + 1 - start)
        suspicion[here] = frame.full.suspicion(measured.evidence)
        score[here], above[0, here], above[1, here] = measured.score, measured.caption_above, measured.image_above
        if number:
            crowd[here] = [-1 if name is None else number[name] for name in crowded_names(data, frame, rows)]
        alone, wrong = crowd[here] < 0, measured.repaired
        counts[0] += frame.full.count(suspicion[here][alone])
        counts[1] += frame.full.count(frame.full.suspicion(wrong))
        counts[2] += frame.near.count(frame.near.suspicion(measured.evidence[alone]))
        counts[3] += frame.near.count(frame.near.suspicion(wrong))
        tell("measuring pairs", here.stop, count)
    image, sizes, suspects = _images_drawn(data, start, stop, suspicion > frame.full.middle)
    crowded = np.bincount(crowd[crowd >= 0], minlength=len(number)).astype(np.int64)
    return Statistics(
        key=frame.key, pairs=len(data), start=start, stop=stop,
        given=counts[0], repaired=counts[1], near_given=counts[2], near_repaired=counts[3],
        image=image, image_pairs=sizes, image_suspects=suspects, crowded=crowded,
        suspicion=suspicion, score=score, caption_above=above[0], image_above=above[1], crowd=crowd,
    )  # fmt: skip


def _images_drawn(data: PairVectors, start: int, stop: int, suspicious: NDArray[np.bool_]) -> tuple[Ints, Ints, Ints]:
    """Images that a hash of their row draws: the image, how many pairs it has here, how many are suspicious."""
    if data.image_of is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)
    rows = data.image_of[start:stop]
    drawn = uniform(rows, 3) < _IMAGES / len(data.images)
    image, place = np.unique(rows[drawn], return_inverse=True)
    return image, np.bincount(place, minlength=len(image)), np.bincount(place[suspicious[drawn]], minlength=len(image))


def merge(parts: list[Statistics]) -> Statistics:
    """One for all; `parts` follow one another from the first row to the last."""
    image, place = np.unique(np.concatenate([part.image for part in parts]), return_inverse=True)

    def together(name: str) -> NDArray[Any]:
        values = [getattr(part, name) for part in parts]
        if name in PER_PAIR:
            return np.concatenate(values)
        if name in ("image_pairs", "image_suspects"):
            return np.bincount(place, np.concatenate(values), len(image)).astype(np.int64)
        return np.asarray(np.sum(values, axis=0, dtype=np.int64))

    names = [f.name for f in fields(Statistics) if f.name not in ("key", "pairs", "start", "stop", "image")]
    first, last = parts[0], parts[-1]
    return Statistics(
        key=first.key, pairs=first.pairs, start=first.start, stop=last.stop, image=image,
        **{name: together(name) for name in names},
    )  # fmt: skip


def save_statistics(statistics: Statistics, path: Path, **more: Any) -> None:
    """One .npz, whole or not at all; `more` is kept beside it, see `load_with_more`."""
    arrays = {f.name: getattr(statistics, f.name) for f in fields(Statistics)}
    plain = {name: value for name, value in arrays.items() if not isinstance(value, np.ndarray)}
    head = np.frombuffer(json.dumps({"version": _VERSION, "more": more, **plain}).encode(), np.uint8)

    def write(target: Path) -> None:
        with target.open("wb") as out:
            np.savez(out, allow_pickle=False, head=head, **{k: v for k, v in arrays.items() if k not in plain})

    write_atomically(path, write)


def load_statistics(path: Path) -> Statistics:
    """Raises InputError where the file is no statistics, damaged, or of another version."""
    return load_with_more(path)[0]


def load_with_more(path: Path) -> tuple[Statistics, dict[str, Any]]:
    """The statistics in a file, and what was kept beside them."""
    plain_file(path, "statistics of a shard")
    damaged = f"{path} is damaged or of another version of mispair; write the statistics of this shard again"
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            if any(part.compress_type != zipfile.ZIP_STORED for part in stored.zip.infolist()):
                raise ValueError("ours are not compressed, so what is could be of any size")
            head = json.loads(stored["head"].tobytes())
            values = {f.name: head[f.name] if f.name in head else stored[f.name] for f in fields(Statistics)}
            version, more = head["version"], dict(head["more"])
    except _BROKEN:
        raise InputError(damaged) from None
    if version != _VERSION or not _sound(values):
        raise InputError(damaged)
    return Statistics(**values), more


def _sound(values: dict[str, Any]) -> bool:
    numbers = [values[name] for name in ("pairs", "start", "stop")]
    if not isinstance(values["key"], str) or not all(type(number) is int for number in numbers):
        return False
    pairs, start, stop = numbers
    if not 0 <= start <= stop <= pairs:
        return False
    lengths = dict.fromkeys(PER_PAIR, stop - start)
    lengths |= dict.fromkeys(("given", "repaired", "near_given", "near_repaired"), BINS) | dict.fromkeys(
        ("image_pairs", "image_suspects"), len(values["image"])
    )
    kinds = {"suspicion": "f", "score": "f"}
    for name, value in values.items():
        if not isinstance(value, np.ndarray):
            continue
        if value.ndim != 1 or value.dtype.kind != kinds.get(name, "i") or len(value) != lengths.get(name, len(value)):
            return False
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            return False
        if value.dtype.kind == "i" and name != "crowd" and (value < 0).any():
            return False
    return bool((values["crowd"] < len(values["crowded"])).all() and (values["crowd"] >= -1).all())
