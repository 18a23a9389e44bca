"""Pictures and texts through an encoder into the cache: decoded ahead by threads, encoded and kept batch by batch.

Which items form a batch depends on their order alone, not on the number of workers or on what an earlier, killed run
had done; and a row is written once. So the same command always ends with the same numbers.
Threads, not processes: Pillow lets go of the interpreter while it decodes and resizes (`benchmarks/encoders.py`).
"""

from __future__ import annotations

import csv
import io
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mispair.atomic import write_atomically
from mispair.encoders.cache import CacheWriter, EncodingTable, content_key, open_table
from mispair.encoders.protocol import Encoder, EncoderOutput
from mispair.errors import InputError
from mispair.pictures.decode import Broken, decode, quiet
from mispair.prefetch import map_ahead
from mispair.spreadsheet import as_cell

if TYPE_CHECKING:
    from PIL.Image import Image

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PictureItem:
    """One picture to encode. `read` is called in any thread; not at all where `key` is known and in the cache."""

    name: str
    read: Callable[[], bytes | Broken]
    key: bytes | None = None  # of its content, where somebody has read it before


@dataclass(frozen=True, slots=True)
class EncodingProgress:
    """How far it is. `total` is None where a stream does not know."""

    done: int  # items dealt with: encoded, found in the cache or failed
    total: int | None
    encoded: int  # of them, by this run
    failed: int
    seconds: float

    @property
    def rate(self) -> float:
        """Items a second."""
        return self.done / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Failure:
    """A picture that could not be encoded."""

    position: int | None  # which item, from 0; None where there was no picture to begin with
    name: str
    reason: str


@dataclass(frozen=True)
class Encodings:
    """What a call left in the cache. `keys[k]` is item k's, None where it failed."""

    tables: dict[str, EncodingTable]  # by output
    keys: list[bytes | None]
    failed: list[Failure] = field(default_factory=list)
    encoded: int = 0  # rows made by this run; the others were in the cache

    def rows(self, output: str) -> NDArray[np.int64]:
        """(n,) row of `tables[output].array()` behind each item; -1 where it failed."""
        there = iter(self.tables[output].rows([key for key in self.keys if key is not None]).tolist())
        return np.fromiter((-1 if key is None else next(there) for key in self.keys), np.int64, len(self.keys))


TellEncoding = Callable[[EncodingProgress], None]


def tell_nobody(progress: EncodingProgress) -> None:
    """For those who do not want to know how far it is."""


def encode_pictures(
    encoder: Encoder,
    items: Iterable[PictureItem],
    cache: Path,
    outputs: Sequence[str] = ("vector",),
    *,
    total: int | None = None,
    batch: int = 32,
    workers: int | None = None,
    tell: TellEncoding = tell_nobody,
) -> Encodings:
    """Encode the pictures that `cache` does not hold yet; what fails is listed, never raised.

    `items` may be a stream: a few batches are held, never all. `workers`: threads that read, decode and resize
    (None: one per core, 0: none, in the caller's thread).

    Raises:
        InputError: the disk is full, the cache cannot be written, or another process is writing it.
    """
    _check(outputs, batch, workers)
    tables = {output: open_table(cache, encoder, "images", output) for output in outputs}
    done = Encodings(tables, [])
    start, encoded = time.monotonic(), 0

    def prepare(item: PictureItem) -> tuple[bytes | None, NDArray[Any] | Broken | None]:
        key, picture = _decoded(item, encoder, tables)
        if picture is None or isinstance(picture, Broken):
            return key, picture
        try:
            return key, encoder.prepare(picture)
        except MemoryError:
            return key, Broken("too large for the memory of this machine")
        except Exception as error:  # noqa: BLE001  anybody's code; one odd picture must not end the run
            return key, Broken(f"the encoder cannot prepare it ({type(error).__name__}: {error})"[:200])

    with ExitStack() as stack:
        stack.enter_context(quiet())
        writers = {output: stack.enter_context(table.writing()) for output, table in tables.items()}
        for chunk in _chunks(map_ahead(prepare, items, _threads(workers), 2 * batch), batch):
            fresh: dict[bytes, NDArray[Any]] = {}
            for item, (key, prepared) in chunk:
                if isinstance(prepared, Broken):
                    done.failed.append(Failure(len(done.keys), item.name, prepared.reason))
                    key = None
                elif prepared is not None and key is not None and any(key not in table for table in tables.values()):
                    fresh.setdefault(key, prepared)
                done.keys.append(key)
            if fresh:
                made = encoder.encode_images(np.stack(list(fresh.values())), tuple(outputs))
                for output, writer in writers.items():
                    _append(writer, tables[output], list(fresh), made[output])
                encoded += len(fresh)
            seconds = time.monotonic() - start
            tell(EncodingProgress(len(done.keys), total, encoded, len(done.failed), seconds))
    return Encodings(tables, done.keys, done.failed, encoded)


def find_undecodable(
    encoder: Encoder, items: Iterable[PictureItem], cache: Path, outputs: Sequence[str] = ("vector",), *,
    total: int | None = None, batch: int = 32, workers: int | None = None, tell: TellEncoding = tell_nobody,
) -> tuple[list[bytes | None], list[Failure]]:  # fmt: skip
    """Decode the pictures that `cache` does not hold, and encode none: which ones `encode_pictures` would fail on.

    The keys of all of them come too (None: it cannot be read), so that encoding reads only what it has to encode. For
    those who refuse a broken picture: decoding takes a twentieth of the time that the network does.
    """
    tables = {output: open_table(cache, encoder, "images", output) for output in outputs}
    keys: list[bytes | None] = []
    failed: list[Failure] = []
    start = time.monotonic()

    def examine(item: PictureItem) -> tuple[bytes | None, Broken | None]:
        key, picture = _decoded(item, encoder, tables)
        return key, picture if isinstance(picture, Broken) else None

    with quiet():
        for chunk in _chunks(map_ahead(examine, items, _threads(workers), 2 * batch), batch):
            for item, (key, broken) in chunk:
                if broken is not None:
                    failed.append(Failure(len(keys), item.name, broken.reason))
                keys.append(key)
            tell(EncodingProgress(len(keys), total, 0, len(failed), time.monotonic() - start))
    return keys, failed


def _decoded(
    item: PictureItem, encoder: Encoder, tables: dict[str, EncodingTable]
) -> tuple[bytes | None, Image | Broken | None]:
    """The key of a picture and the picture; None instead where all tables have it, why not where it cannot be had."""
    if item.key is not None and all(item.key in table for table in tables.values()):
        return item.key, None
    try:
        data = item.read()
    except OSError as error:
        data = Broken(f"cannot be read ({error.strerror or type(error).__name__})")
    if isinstance(data, Broken):
        return None, data
    key = content_key(data)
    return key, None if all(key in table for table in tables.values()) else decode(data, encoder.side)


def encode_texts(
    encoder: Encoder, texts: Iterable[str], cache: Path, output: str = "vector", *, total: int | None = None,
    batch: int = 256, tell: TellEncoding = tell_nobody,
) -> Encodings:  # fmt: skip
    """Encode the texts that `cache` does not hold yet. Raises as `encode_pictures` does; no text fails."""
    _check((output,), batch, None)
    table = open_table(cache, encoder, "texts", output)
    keys: list[bytes | None] = []
    start, encoded = time.monotonic(), 0
    with table.writing() as writer:
        for chunk in _chunks(iter(texts), batch):
            named = [(content_key(text), text) for text in chunk]
            fresh = {key: text for key, text in named if key not in table}
            if fresh:
                made = encoder.encode_texts(list(fresh.values()), (output,))[output]
                writer.append(list(fresh), made)
                encoded += len(fresh)
            keys.extend(key for key, _ in named)
            tell(EncodingProgress(len(keys), total, encoded, 0, time.monotonic() - start))
    return Encodings({output: table}, keys, [], encoded)


def write_failed(path: Path, failures: Sequence[Failure]) -> None:
    """`failed.csv`: the item's number from 0 (nothing where there was no picture), its name, and why."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("row", "name", "reason"))
    rows.writerows((failure.position, as_cell(failure.name), failure.reason) for failure in failures)
    encoded = text.getvalue().encode("utf-8", "surrogateescape")
    write_atomically(path, lambda temporary: temporary.write_bytes(encoded))


def _append(writer: CacheWriter, table: EncodingTable, keys: list[bytes], made: EncoderOutput) -> None:
    """The rows this table lacks: a run killed between two tables has left them in one already."""
    new = [row for row, key in enumerate(keys) if key not in table]
    lengths = None if made.lengths is None else made.lengths[new]
    writer.append([keys[row] for row in new], EncoderOutput(made.values[new], lengths))


def _chunks(items: Iterator[T], size: int) -> Iterator[list[T]]:
    while chunk := list(islice(items, size)):
        yield chunk


def _threads(workers: int | None) -> int:
    if workers is not None:
        return workers
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _check(outputs: Sequence[str], batch: int, workers: int | None) -> None:
    if not outputs:
        raise InputError("no output was asked for; expected 'vector' or 'cells'")
    if batch < 1:
        raise InputError(f"batch must be at least 1, got {batch}")
    if workers is not None and workers < 0:
        raise InputError(f"workers must be 0 or more, got {workers}")
