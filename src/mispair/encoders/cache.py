"""The cache of encodings: one folder per encoder and output, rows appended once, found by the content they encode.

    CACHE/basic-3f9c.../images-cells-36x1280/about.json   what the rows are
                                            /rows.bin     (N, *shape), appended
                                            /lengths.bin  (N,) int32, real tokens of each row; only for "tokens"
                                            /keys.bin     (N, 32) sha256 of what each row encodes, appended last

A row counts once its key is written, so a kill leaves at most rows without keys, which the next writer cuts off.
Files only grow, so others may read while one process writes.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mispair.atomic import write_text
from mispair.encoders.protocol import Encoder, EncoderOutput
from mispair.errors import InputError
from mispair.ordinary_file import read_ordinary

FORMAT = 1
_KEY = 32


def content_key(content: bytes | str) -> bytes:
    """sha256 of a picture's bytes or of a text."""
    return hashlib.sha256(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content).digest()


def open_table(folder: Path, encoder: Encoder, side: str, output: str) -> EncodingTable:
    """The rows of one output ("images", "cells") of one encoder; made when there are none yet."""
    shapes = encoder.images if side == "images" else encoder.texts
    if output not in shapes:
        there = ", ".join(shapes) or "none"
        raise InputError(f"the encoder '{encoder.name}' makes no {output} of {side}; what it makes: {there}")
    shape = shapes[output]
    known = re.sub(r"@[^+]*", "", encoder.name)  # without the commit: the fingerprint says more
    slug = re.sub(r"[^A-Za-z0-9._+-]+", "-", known).strip("-.")[:60] or "encoder"
    name = f"{side}-{output}-{'x'.join(map(str, shape))}"
    about = {"format": FORMAT, "encoder": known, "fingerprint": encoder.fingerprint, "output": name}
    return EncodingTable(
        folder / f"{slug}-{encoder.fingerprint[:16]}" / name, shape, about, with_lengths=output == "tokens"
    )


class EncodingTable:
    """Rows by key. Reading needs no permission of anybody; `with table.writing():` lets one process append."""

    def __init__(self, folder: Path, shape: tuple[int, ...], about: dict[str, Any], *, with_lengths: bool) -> None:
        self.folder, self.shape, self.about = folder, shape, about
        self.dtype = np.dtype(np.float32 if len(shape) == 1 else np.float16)
        self._row_bytes = int(np.prod(shape)) * self.dtype.itemsize
        self._with_lengths = with_lengths
        self._index: dict[bytes, int] = {}
        self._refuse_other()
        self.refresh()

    def __len__(self) -> int:
        return len(self._index)

    def __contains__(self, key: bytes) -> bool:
        return key in self._index

    def rows(self, keys: Sequence[bytes]) -> NDArray[np.int64]:
        """(n,) the row of `array` behind each key; a KeyError where one was never encoded."""
        return np.fromiter((self._index[key] for key in keys), np.int64, len(keys))

    def array(self) -> NDArray[Any]:
        """(N, *shape) memory-mapped, read-only: float32 for vectors, float16 for cells and tokens."""
        if not self._index:
            return np.empty((0, *self.shape), self.dtype)
        return np.memmap(self.folder / "rows.bin", self.dtype, "r", shape=(len(self), *self.shape))

    def lengths(self) -> NDArray[np.int64] | None:
        """(N,) real tokens of each row; None where every row is full."""
        if not self._with_lengths:
            return None
        if not self._index:
            return np.empty(0, np.int64)
        lengths = np.fromfile(self.folder / "lengths.bin", "<i4", len(self)).astype(np.int64)
        if lengths.min() < 0 or lengths.max() > self.shape[0]:
            raise self._damaged("lengths.bin holds what is no number of tokens")
        return lengths

    def refresh(self) -> None:
        """Take in what another process has appended."""
        try:
            keys = read_ordinary(self.folder / "keys.bin", most=None)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise self._damaged(f"keys.bin cannot be read ({error.strerror})") from None
        for start in range(len(self) * _KEY, len(keys) - _KEY + 1, _KEY):
            self._index[keys[start : start + _KEY]] = start // _KEY
        if len(self) < len(keys) // _KEY:  # one key twice: the rows behind it would be taken for others
            raise self._damaged("keys.bin names a row twice")
        for name, width in self._files()[:-1]:
            if _size(self.folder / name) < len(self) * width:
                raise self._damaged(f"{name} is shorter than keys.bin says")

    def writing(self) -> CacheWriter:
        return CacheWriter(self)

    def _damaged(self, why: str) -> InputError:
        return InputError(f"{self.folder} is damaged: {why}; delete the folder, what it held is encoded again")

    def _files(self) -> list[tuple[str, int]]:
        """Each file and its bytes per row, in the order they are written."""
        lengths = [("lengths.bin", 4)] if self._with_lengths else []
        return [("rows.bin", self._row_bytes), *lengths, ("keys.bin", _KEY)]

    def _refuse_other(self) -> None:
        path = self.folder / "about.json"
        try:
            stored = json.loads(read_ordinary(path))
        except (FileNotFoundError, NotADirectoryError):
            return
        except (OSError, ValueError, RecursionError):
            stored = None
        if not isinstance(stored, dict) or stored | {"encoder": self.about["encoder"]} != self.about:  # moved: the same
            raise InputError(f"{self.folder} is not a cache of this version of mispair; delete the folder")


class CacheWriter:
    """The one process that may append. Every append is whole or not at all."""

    def __init__(self, table: EncodingTable) -> None:
        self._table = table
        self._lock: int | None = None

    def __enter__(self) -> CacheWriter:
        table = self._table
        try:
            table.folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(table.folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.__exit__(None, None, None)
            raise InputError(
                f"another mispair is encoding into {table.folder}; wait until it has finished, then run this again"
            ) from None
        except OSError as error:
            raise InputError(
                f"{table.folder} cannot be written ({error.strerror}); choose another cache ($MISPAIR_CACHE)"
            ) from None
        about = table.folder / "about.json"
        if not about.exists():
            write_text(about, json.dumps(table.about, indent=2) + "\n")
        table.refresh()
        self._cut()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lock is not None:
            os.close(self._lock)  # gives the lock back, as the end of the process does
            self._lock = None

    def append(self, keys: Sequence[bytes], encoded: EncoderOutput) -> None:
        """Rows that are not there yet, values (n, *shape). A full disk leaves the table as it was."""
        table = self._table
        assert encoded.values.shape == (len(keys), *table.shape), (encoded.values.shape, table.shape)
        assert not any(key in table for key in keys)
        content = [np.ascontiguousarray(encoded.values, table.dtype).tobytes()]
        if table._with_lengths:
            assert encoded.lengths is not None
            content.append(encoded.lengths.astype("<i4").tobytes())
        content.append(b"".join(keys))
        try:
            for (name, _), data in zip(table._files(), content, strict=True):
                with open(table.folder / name, "ab", buffering=0) as file:
                    _write_all(file.fileno(), data)
                    os.fsync(file.fileno())
        except OSError as error:
            self._cut()
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise InputError(
                    f"the disk is full: {len(table):,} rows are safe in {table.folder}; free some space and run the "
                    "same command again, it goes on from there"
                ) from None
            raise InputError(f"{table.folder} cannot be written ({error.strerror})") from None
        for key in keys:
            table._index[key] = len(table._index)

    def _cut(self) -> None:
        """Remove what a killed process wrote without finishing."""
        table = self._table
        for name, width in table._files():
            path = table.folder / name
            if _size(path) > len(table) * width:
                os.truncate(path, len(table) * width)


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _size(path: Path) -> int:
    """Bytes of an ordinary file; 0 for anything else."""
    return path.stat().st_size if path.is_file() else 0
