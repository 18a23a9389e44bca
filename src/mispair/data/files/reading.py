"""Files a person gave us: every way reading one can fail ends in one sentence."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mispair import value_words
from mispair.errors import InputError
from mispair.missing_path import does_not_exist

_NOT_WINDOWS = frozenset(b"\x81\x8d\x8f\x90\x9d")  # bytes that mean nothing in cp1252


@dataclass(frozen=True, slots=True)
class Lines:
    """A text file by line. `replaced` are the 1-based lines whose bytes were not UTF-8 (`decode_line`)."""

    lines: list[str]
    replaced: tuple[int, ...] = ()


def plain_file(path: str | os.PathLike[str], what: str) -> Path:
    """The path, once it is known to be an ordinary file; opening a pipe or a device could wait for ever."""
    file = Path(path)
    with reading(file, what):
        mode = file.stat().st_mode
    if stat.S_ISDIR(mode):
        raise InputError(f"{file} is a directory; expected {what}, so give the path of the file itself")
    if not stat.S_ISREG(mode):
        raise InputError(f"{file} is not an ordinary file; expected {what}, so copy its content to a file first")
    return file


@contextmanager
def reading(file: Path, what: str) -> Iterator[None]:
    """Turn the operating system's refusals into a sentence about `file`, which should have been `what`."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{does_not_exist(file)}; expected {what}, so check the path") from None
    except PermissionError:
        raise InputError(f"{file} may not be read (no permission); expected {what}, so try: chmod +r {file}") from None
    except NotADirectoryError:
        raise InputError(f"{file} lies under something that is not a folder; expected {what}, check the path") from None
    except OSError as error:
        if error.strerror is None:  # not the system's: Arrow's, of bytes that are not what they should be
            raise InputError(f"{file} is damaged; expected {what}, so copy it again or write it again") from None
        raise InputError(f"{file} cannot be read ({error.strerror}); expected {what}") from None
    except ValueError as error:
        if "null" not in str(error):  # a NUL inside a path is the only ValueError that opening can raise
            raise
        raise InputError(f"{str(file)!r} is not a path (it holds a NUL byte); expected {what}") from None


def read_bytes(path: str | os.PathLike[str], what: str, most: int | None = None) -> bytes:
    """A file read whole. Raises InputError where it cannot be, or has more than `most` bytes; `what` was expected."""
    file = plain_file(path, what)
    with reading(file, what):
        if most is not None and file.stat().st_size > most:
            raise InputError(f"{file} is far larger than {what} can be; it is not one of ours")
        return file.read_bytes()


def read_lines(path: str | os.PathLike[str], what: str) -> Lines:
    r"""The lines of a UTF-8 file, split at "\n" alone as the published readers do, without "\r" at their end.

    Bytes that are not UTF-8 do not make the other lines useless: they are read as Latin-1 and their lines are listed.
    """
    data = read_bytes(path, what)
    refuse_binary(data, path, what)
    data = data.removeprefix(b"\xef\xbb\xbf")
    raw = data.split(b"\n")
    if raw[-1] == b"":
        raw.pop()
    try:
        lines = data.decode().split("\n")[: len(raw)]
        return Lines([line.rstrip("\r") for line in lines])
    except UnicodeDecodeError:
        decoded = [decode_line(line).rstrip("\r") for line in raw]
        return Lines(decoded, tuple(k for k, line in enumerate(raw, 1) if not is_utf8(line)))


def decode_line(line: bytes) -> str:
    """A line as UTF-8, else as Latin-1, as Windows has it; U+FFFD for what is broken in a line otherwise UTF-8."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        if line.decode(errors="ignore").isascii():
            return line.decode("latin-1") if set(line) & _NOT_WINDOWS else line.decode("cp1252")
        return line.decode(errors="replace")


def refuse_binary(data: bytes, path: str | os.PathLike[str], what: str) -> None:
    """Text has no NUL bytes; a file that has is UTF-16, or no text at all."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(f"{path} is UTF-16; expected {what} in UTF-8, so try: iconv -f utf-16 -t utf-8")
    where = data.find(b"\0")
    if where >= 0:
        line = data.count(b"\n", 0, where) + 1
        raise InputError(f"{path}, line {line}: a NUL byte; expected {what} as UTF-8 text, so this is the wrong file")


def read_text(path: str | os.PathLike[str], what: str, most: int | None = None) -> str:
    """The text of a UTF-8 file. Raises InputError with the line where it is none; `what` was expected."""
    data = read_bytes(path, what, most)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        file = Path(path)
        raise InputError(
            f"{path}, line {line}: bytes that are not UTF-8; expected {what} in UTF-8: if they are Latin-1,"
            f" iconv -f latin1 -t utf-8 {file.name} > new{file.suffix}"
        ) from None


def read_json(path: str | os.PathLike[str], what: str) -> Any:
    """The value in a JSON file. Raises InputError with the line where it is none; `what` is what was expected in it."""
    text = read_text(path, f"{what} as JSON")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {error.lineno}: not JSON ({error.msg}); expected {what}") from None
    except (RecursionError, ValueError):  # nested too deeply, or an integer of too many digits
        raise InputError(
            f"{path} is not usable JSON (nested too deeply or a number too long); expected {what}"
        ) from None


def some_names(names: list[str], most: int = 3) -> str:
    """The first `most` names, quoted, and how many more there are: 'a', 'b', 'c' and 9 more; long ones are cut."""
    shown = ", ".join(value_words.shorten(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"


def is_utf8(line: bytes) -> bool:
    """Whether these bytes are text as everybody writes it today."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
