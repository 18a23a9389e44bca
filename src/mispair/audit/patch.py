"""A patch that reverts: how to rebuild every original file from the fixed ones, byte by byte.

`fix.patch` is a zip archive of `patch.json` and `blob`. An original file is a list of segments: [offset, length] copied
from the fixed file of the same name, or [-1, length] taken from the blob, in order. What did not change is only named.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mispair.errors import InputError

NAME = "fix.patch"
VERSION = 1
_PIECE = 1 << 20


def write_patch(before: Path, after: Path, names: list[str], about: dict[str, Any]) -> None:
    """The patch that turns the files in `after` back into the named files in `before`, written to `after`."""
    files: dict[str, Any] = {}
    with zipfile.ZipFile(after / NAME, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("blob", "w", force_zip64=True) as blob:
            for name in names:
                files[name] = _segments(before / name, after / name, blob)
        archive.writestr("patch.json", json.dumps({"version": VERSION, **about, "files": files}))


def revert(fixed: Path, target: Path) -> dict[str, Any]:
    """Write the original files of the fixed folder into `target`; what was said about the fix comes back."""
    path = fixed / NAME
    if not path.is_file():
        raise InputError(f"{fixed} cannot be undone: it has no {NAME}, which 'mispair fix' writes beside the data")
    try:
        with zipfile.ZipFile(path) as archive, archive.open("blob") as blob:
            about: dict[str, Any] = json.loads(archive.read("patch.json"))
            if about.get("version") != VERSION:
                raise InputError(f"{path} was written by another version of mispair; undo it with that one")
            for name, file in about["files"].items():
                if Path(name).name != name:
                    raise InputError(f"{path} names {name!r}, which is not a plain file name; it is not one of ours")
                _rebuild(fixed / name, target / name, file, blob)
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, EOFError, OSError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is damaged ({type(error).__name__}); the fix cannot be undone with it") from None
    return about


def _segments(old: Path, new: Path, blob: Any) -> dict[str, Any]:
    known: dict[bytes, int] = {}
    at = 0
    for block in _blocks(new) if new.exists() else ():
        known.setdefault(_digest(block), at)
        at += len(block)
    segments: list[list[int]] = []
    whole = hashlib.sha256()
    for block in _blocks(old):
        whole.update(block)
        start = known.get(_digest(block), -1)
        if start < 0:
            blob.write(block)
        if segments and start == (-1 if segments[-1][0] < 0 else sum(segments[-1])):
            segments[-1][1] += len(block)
        else:
            segments.append([start, len(block)])
    return {"sha256": whole.hexdigest(), "segments": segments}


def _rebuild(new: Path, old: Path, file: dict[str, Any], blob: Any) -> None:
    whole = hashlib.sha256()
    source = new.open("rb") if new.exists() else None
    with old.open("wb") as out:
        for start, length in file["segments"]:
            if start >= 0 and source is None:
                raise InputError(f"{new} is missing, so the fix cannot be undone; put it back")
            stream = blob
            if start >= 0 and source is not None:
                source.seek(start)
                stream = source
            left = length
            while left:
                piece = stream.read(min(left, _PIECE))
                if not piece:
                    raise InputError(f"{new} is shorter than when it was written, so the fix cannot be undone")
                out.write(piece)
                whole.update(piece)
                left -= len(piece)
    if source is not None:
        source.close()
    if whole.hexdigest() != file["sha256"]:
        raise InputError(f"{new} was changed after the fix, so it cannot be undone; restore the file and try again")


def _blocks(path: Path) -> Iterator[bytes]:
    """The file in pieces that a fix moves as wholes: rows of an array, lines of a text."""
    if path.suffix == ".npy":
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        row = array.nbytes // max(len(array), 1) if array.ndim else 0
        with path.open("rb") as file:
            yield file.read(path.stat().st_size - array.nbytes)
            while row and (block := file.read(row)):
                yield block
        return
    with path.open("rb") as file:
        if path.suffix == ".parquet":
            while piece := file.read(_PIECE):
                yield piece
        else:
            yield from file


def _digest(block: bytes) -> bytes:
    return hashlib.blake2b(block, digest_size=16).digest()
