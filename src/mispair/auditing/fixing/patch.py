"""A patch that reverts: how to rebuild every original file from the fixed ones, byte by byte.

`fix.patch` is a zip archive of `patch.json` and `blob`. An original file is a list of segments: [offset, length] copied
from the fixed file of the same name, or [-1, length] taken from the blob, in order. What did not change is only named.
Equal fixes give equal patches, byte by byte. A patch may come from a stranger: it is read through one typed door,
writes below its folder only, and unpacks to no more than the disk holds.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mispair.auditing.fixing.chunks import chunks, sha256
from mispair.counted import counted
from mispair.data.files.npy import read_header
from mispair.data.files.reading import plain_file
from mispair.errors import InputError
from mispair.missing_path import does_not_exist, is_missing

NAME = "fix.patch"
VERSION = 1
_PIECE = 1 << 20
_MOST_JSON = 128 << 20
_MOST_SEGMENTS = 2_000_000  # of a patch: each takes a hundred bytes of memory when it is read
_MOST_NAMES = 500_000  # values with a name, three of each file: every wrong one costs a kilobyte when it is refused
_MOST_RATIO = 200  # to which captions and features are never packed; only a bomb is
_SMALL = 64 << 20  # bytes that may be packed as well as they like
_LINES = (".txt", ".csv", ".tsv", ".jsonl", ".ndjson", ".token")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first time a zip can name

Size = Annotated[int, Field(ge=0, lt=1 << 50)]


class _File(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    sha256: str
    segments: list[tuple[Annotated[int, Field(ge=-1, lt=1 << 50)], Size]]


class Patch(BaseModel):
    """What `patch.json` says."""

    model_config = ConfigDict(strict=True, extra="forbid")
    version: Literal[1]
    action: str
    pairs: Size
    kept: Size
    changed: Size
    wrong: Annotated[float, Field(ge=0, le=1)] | None = None  # expected share of the kept pairs that are mismatched
    files: dict[str, _File]


def write_patch(before: Path, after: Path, names: list[str], about: dict[str, Any]) -> None:
    """The patch that turns the files in `after` back into the named files in `before`, written to `after`."""
    files: dict[str, Any] = {}
    left = _MOST_SEGMENTS - 2 * len(names)  # of every file at least the last two
    with zipfile.ZipFile(after / NAME, "w") as archive:
        with archive.open(_entry("blob"), "w", force_zip64=True) as blob:
            for name in sorted(names):
                files[name] = _segments(before / name, after / name, blob, left)
                left -= max(0, len(files[name]["segments"]) - 2)
        content = json.dumps({"version": VERSION, **about, "files": files})
        if len(content) > _MOST_JSON or content.count(":") > _MOST_NAMES:
            raise InputError(f"{counted(len(names), 'file')} are more than a patch can name; fix them in parts")
        archive.writestr(_entry("patch.json"), content)


def _entry(name: str) -> zipfile.ZipInfo:
    """Without the time of writing, so that equal patches are equal files."""
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system, entry.external_attr = 3, 0o600 << 16
    return entry


def read_patch(path: Path) -> Patch:
    """What a patch says. Raises InputError where it is damaged or not ours."""
    plain_file(path, "a patch of mispair fix")
    with _damage(path), zipfile.ZipFile(path) as archive:
        return _read(path, archive)


def revert(fixed: Path, target: Path) -> Patch:
    """Write the original files of the fixed folder into `target`; what was said about the fix comes back.

    Raises InputError where the patch or a fixed file is missing, damaged or changed, OSError where `target` cannot be
    written.
    """
    path = fixed / NAME
    if is_missing(fixed):
        raise InputError(f"{does_not_exist(fixed)}; expected a folder that 'mispair fix' wrote")
    if not path.exists():
        raise InputError(f"{fixed} cannot be undone: it has no {NAME}, which 'mispair fix' writes beside the data")
    plain_file(path, "a patch of mispair fix")
    with _damage(path), zipfile.ZipFile(path) as archive:
        patch = _read(path, archive)
        free = shutil.disk_usage(target).free
        size = sum(length for file in patch.files.values() for _, length in file.segments)
        if size > free:
            raise InputError(f"{path} unpacks to {size / 1e9:,.1f} GB, but {free / 1e9:,.1f} GB are free; free some")
        with archive.open("blob") as blob:
            for name, file in patch.files.items():
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                _rebuild(fixed / name, target / name, file, blob, path)
    return patch


def _read(path: Path, archive: zipfile.ZipFile) -> Patch:
    listing, blob = archive.getinfo("patch.json"), archive.getinfo("blob")
    bombs = any(e.file_size > max(_SMALL, _MOST_RATIO * e.compress_size) for e in (listing, blob))
    if listing.file_size > _MOST_JSON or bombs:
        raise InputError(f"{path} unpacks to far more than a fix writes; it is not one of ours")
    with archive.open(listing) as stream:
        content = stream.read(_MOST_JSON + 1)
    many = content.count(b"[") > _MOST_SEGMENTS + content.count(
        b"{"
    )  # before they are built; a file has a list of them
    if many or content.count(b":") > _MOST_NAMES:
        raise InputError(f"{path} names more pieces than a fix writes; it is not one of ours")
    try:
        patch = Patch.model_validate_json(content)
    except ValidationError as error:
        few = error.error_count() < 100
        if few and any(complaint["loc"] == ("version",) for complaint in error.errors(include_input=False)):
            raise InputError(f"{path} was written by another version of mispair; undo it with that one") from None
        raise
    for name in patch.files:
        parts = name.split("/")
        if any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts) or name == NAME:
            raise InputError(f"{path} names {name!r}, which is not a plain file name; it is not one of ours")
    unpacked = sum(length for file in patch.files.values() for start, length in file.segments if start < 0)
    if unpacked > blob.file_size:
        raise InputError(f"{path} is damaged (its blob is too short); the fix cannot be undone with it")
    return patch


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    """Whatever reading a damaged archive raises, in one sentence; a disk that cannot be written is another matter."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EINVAL:  # a place before the beginning of the file
            raise
        raise InputError(f"{path} is damaged; the fix cannot be undone with it") from None
    except (
        *(zipfile.BadZipFile, zlib.error, ValidationError, KeyError, ValueError, TypeError, AttributeError, EOFError),
        *(NotImplementedError, RuntimeError, RecursionError, OverflowError),
    ) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is damaged; the fix cannot be undone with it") from None


def _segments(old: Path, new: Path, blob: IO[bytes], most: int) -> dict[str, Any]:
    """How `old` is rebuilt from `new`; past so many segments it goes into the blob as it is."""
    if new.exists() and os.path.samefile(old, new):
        return {"sha256": sha256(old), "segments": [[0, os.stat(old).st_size]]}
    known: dict[bytes, int] = {}
    at = 0
    for block in _blocks(new) if new.exists() else ():
        known.setdefault(_digest(block), at)
        at += len(block)
    segments: list[list[int]] = []
    whole = hashlib.sha256()
    for block in _blocks(old):
        whole.update(block)
        start = known.get(_digest(block), -1) if len(segments) < most else -1
        if start < 0:
            blob.write(block)
        if segments and start == (-1 if segments[-1][0] < 0 else sum(segments[-1])):
            segments[-1][1] += len(block)
        else:
            segments.append([start, len(block)])
    return {"sha256": whole.hexdigest(), "segments": segments}


def _rebuild(new: Path, old: Path, file: _File, blob: IO[bytes], path: Path) -> None:
    whole = hashlib.sha256()
    needed = any(start >= 0 for start, _ in file.segments)
    if needed and not new.exists():
        raise InputError(f"{new} is missing, so the fix cannot be undone; put it back")
    source = plain_file(new, "a file that the fix wrote").open("rb") if needed else None
    try:
        with old.open("wb") as out:
            for start, length in file.segments:
                stream = blob
                if start >= 0:
                    assert source is not None
                    source.seek(start)
                    stream = source
                left = length
                while left:
                    piece = stream.read(min(left, _PIECE))
                    if not piece:
                        short = new if stream is source else path
                        raise InputError(f"{short} is shorter than when it was written, so the fix cannot be undone")
                    out.write(piece)
                    whole.update(piece)
                    left -= len(piece)
    finally:
        if source is not None:
            source.close()
    if whole.hexdigest() != file.sha256:
        raise InputError(f"{new} was changed after the fix, so it cannot be undone; restore the file and try again")


def _blocks(path: Path) -> Iterator[bytes]:
    """The file in pieces that a fix moves as wholes: rows of an array, lines of a text, stretches of anything else."""
    if path.suffix == ".npy":
        header = read_header(path, "an array of the data")
        row = header.dtype.itemsize * prod(header.shape[1:]) if header.shape else 0
        with path.open("rb") as file:
            yield file.read(header.offset if row else -1)
            while row and (block := file.read(row)):
                yield block
        return
    with path.open("rb") as file:
        if path.suffix in _LINES:
            yield from file
        else:
            yield from chunks(file)


def _digest(block: bytes) -> bytes:
    return hashlib.blake2b(block, digest_size=16).digest()
