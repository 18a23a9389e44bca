"""Is this .npy file what it says? Its header is read by hand, nothing is unpickled, nothing is copied."""

from __future__ import annotations

import ast
import os
import re
import warnings
import zipfile
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mispair.data.files.reading import plain_file, reading, some_names
from mispair.errors import InputError

_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 10_000  # what numpy itself refuses to parse beyond
_PYTHON2_LONG = re.compile(r"(?<=\d)L\b")  # the published arrays were saved by Python 2: (29000L, 36L, 2048L)

_TYPE = re.compile(r"[<>=|]?(?:O|[?biufcSUVmM]\d{1,9}|\?)(?:\[\w+\])?")


@dataclass(frozen=True, slots=True)
class Header:
    """What a .npy file says of itself, checked against the size of the file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int  # where the values start


def read_header(path: str | os.PathLike[str], what: str) -> Header:
    """The header of `path`; `what` names the array in the sentence that refuses it."""
    file = plain_file(path, what)
    with reading(file, what), file.open("rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        start = stream.read(12)
        _refuse_other_formats(file, start, what)
        major = start[6] if len(start) > 6 else 0
        if major not in (1, 2, 3):
            raise InputError(f"{file}: damaged header (format version {major}); expected {what} saved with numpy.save")
        lead, width = (10, 2) if major == 1 else (12, 4)
        if len(start) < lead:
            raise InputError(f"{file} stops inside its header; expected {what}: copy or download it again")
        length = int.from_bytes(start[8 : 8 + width], "little")
        if length > _LONGEST_HEADER:
            raise InputError(f"{file}: damaged header ({length:,} bytes long); expected {what}: copy it again")
        stream.seek(lead)
        text = stream.read(length)
    if len(text) < length:
        raise InputError(f"{file} stops inside its header; expected {what}: copy or download it again")
    header = _parse(file, text, what, lead + length)
    _check_size(file, header, size, what)
    return header


def open_array(path: str | os.PathLike[str], what: str) -> NDArray[Any]:
    """A read-only memory map of `path`; only the header has been read."""
    header = read_header(path, what)
    if 0 in header.shape:
        raise InputError(f"{path} has shape {header.shape}, so it is empty; expected {what} with at least one row")
    with reading(Path(path), what):
        return np.memmap(path, dtype=header.dtype, mode="r", offset=header.offset, shape=header.shape)


def open_integers(path: str | os.PathLike[str], what: str) -> NDArray[np.int64]:
    """A small array of integers, read whole."""
    header = read_header(path, what)
    if header.dtype.kind not in "iu":
        raise InputError(
            f"{path} holds {header.dtype}; expected {what} as integers, so save it with .astype(numpy.int64)"
        )
    if 0 in header.shape:
        raise InputError(f"{path} has shape {header.shape}, so it is empty; expected {what}")
    values = np.asarray(open_array(path, what))
    if header.dtype.kind == "u" and int(values.max()) > np.iinfo(np.int64).max:
        raise InputError(f"{path} holds {values.max()}, beyond 64-bit integers; expected {what}")
    return values.astype(np.int64)


def _refuse_other_formats(file: Path, start: bytes, what: str) -> None:
    if start[:6] == _MAGIC:
        return
    if not start:
        trouble = "is empty (0 bytes)"
    elif start[:4] == b"PK\x03\x04":
        trouble = _zip_trouble(file)
    elif start[:8] == b"version ":
        trouble = "looks like a Git LFS pointer, not the array: run git lfs pull"
    elif start[:2] in (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"):
        trouble = "is a pickle, which is never opened here: save the array with numpy.save"
    else:
        trouble = "does not start like a .npy file: save the array with numpy.save"
    raise InputError(f"{file}: expected {what}, but the file {trouble}")


def _zip_trouble(file: Path) -> str:
    """A zip archive is what numpy.savez and torch.save write; nothing in it is unpacked."""
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        names = []
    if any(name.endswith("data.pkl") for name in names):
        return "is a PyTorch file (torch.save), which is not opened here: save tensor.numpy() with numpy.save"
    arrays = [name.removesuffix(".npy") for name in names if name.endswith(".npy")]
    if arrays:
        return f"is an .npz archive of {some_names(arrays)}: save the one array that is meant with numpy.save"
    return "is a zip archive: save the array in it with numpy.save"


def _parse(file: Path, text: bytes, what: str, offset: int) -> Header:
    damaged = InputError(f"{file}: damaged header; expected {what} saved with numpy.save: copy or download it again")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a damaged literal can make the parser talk about its spelling
            fields = ast.literal_eval(_PYTHON2_LONG.sub("", text.decode("latin-1")).strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise damaged from None
    if not isinstance(fields, dict) or set(fields) != {"descr", "fortran_order", "shape"}:
        raise damaged
    shape, descr, fortran = fields["shape"], fields["descr"], fields["fortran_order"]
    sizes_ok = isinstance(shape, tuple) and all(type(size) is int and 0 <= size < 2**62 for size in shape)
    if not sizes_ok or not isinstance(fortran, bool):
        raise damaged
    if not isinstance(descr, str):
        raise InputError(f"{file} holds records with several fields; expected {what}: save one plain array")
    if not _TYPE.fullmatch(descr):
        raise damaged
    try:
        dtype = np.dtype(descr)
    except (TypeError, ValueError, SyntaxError):
        raise damaged from None
    if dtype.hasobject:
        raise InputError(
            f"{file} holds Python objects, which are never unpickled; expected {what}: save it as a plain numeric array"
        )
    if fortran and len(shape) > 1 and min(shape) > 1:
        raise InputError(
            f"{file} is stored column by column; expected {what} by row: save numpy.ascontiguousarray(array)"
        )
    return Header(dtype, shape, offset)


def _check_size(file: Path, header: Header, size: int, what: str) -> None:
    row = header.dtype.itemsize * prod(header.shape[1:])
    expected = header.offset + header.dtype.itemsize * prod(header.shape)
    if size < expected:
        whole = max(size - header.offset, 0) // row if row else 0
        raise InputError(
            f"{file} is truncated: {size:,} of {expected:,} bytes, it ends in row {whole:,} of {header.shape[0]:,};"
            f" expected {what}: copy or download it again"
        )
    if size > expected:
        raise InputError(
            f"{file} is longer ({size:,} bytes) than its header {header.dtype}{header.shape} says ({expected:,});"
            f" expected {what}: the header is damaged, save the array again"
        )
