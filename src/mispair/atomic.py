"""Files that are there whole or not at all: written under a temporary name, flushed to disk and renamed.

A temporary file carries machine and process in its name; what a killed process left behind is removed by the next one
that writes the same file.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import socket
import stat
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from mispair.errors import InputError

_FULL = (errno.ENOSPC, errno.EDQUOT, None)


def write_atomically(path: Path, write: Callable[[Path], object], remedy: str = "run the command again") -> None:
    """Call `write` on a temporary neighbour of `path`, flush it to disk, and rename it over `path`.

    Raises InputError where that fails; whatever was at `path` is then as it was. `remedy` says what to do about a full
    disk, after freeing some space.
    """
    _refuse_special(path)
    temporary = temporary_beside(path)
    try:
        make_folder(path.parent)
        clear_leftovers(path.parent, path.name)
        write(temporary)
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except (OSError, RuntimeError) as error:  # a full disk is a RuntimeError to torch, and has no number to numpy
        remove_quietly(temporary)
        kept = "what was there before is intact; " if os.path.lexists(path) else ""
        if isinstance(error, RuntimeError) or error.errno in _FULL:
            raise InputError(
                f"the disk is full: {path} could not be written; {kept}free some space and {remedy}"
            ) from error
        raise InputError(f"{path} could not be written: {error.strerror or error}; choose another place") from error
    except BaseException:  # a second Ctrl-C, or a defect in `write`
        remove_quietly(temporary)
        raise


def _refuse_special(path: Path) -> None:
    """A device is no place for a file: whoever may write beside it would have it replaced, for all of the machine."""
    try:
        mode = os.stat(path).st_mode  # of what a link leads to, as /dev/stdout does
    except OSError:
        return
    special = not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
    if special or os.path.dirname(os.path.abspath(path)) == "/dev":
        raise InputError(f"{path} is a device or a pipe, which a file would replace; choose the name of a file")


def write_text(path: Path, text: str, remedy: str = "run the command again") -> None:
    """`text` as UTF-8, whole or not at all."""
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"), remedy)


def make_folder(folder: Path) -> None:
    """The folder and those above it; InputError where that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be made: {error.strerror}; choose another place") from None


def refuse_unwritable(folder: Path) -> None:
    """Raise InputError where nothing can be written into `folder`, before the work is done; nothing is left there."""
    existed = os.path.lexists(folder)
    make_folder(folder)
    clear_leftovers(folder, "probe")
    probe = temporary_beside(folder / "probe")
    try:
        probe.touch()
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror}; choose another place") from None
    finally:
        remove_quietly(probe)
        if not existed:
            with contextlib.suppress(OSError):
                folder.rmdir()


@contextlib.contextmanager
def make_atomically(out: Path) -> Iterator[Path]:
    """A hidden folder beside `out` to write in; whoever uses it renames a part of it to `out`, the rest is removed.

    Raises InputError where `out` exists already, and for every OSError inside; nothing is then left behind.
    """
    if os.path.lexists(out):
        raise InputError(f"{out} exists already; nothing is overwritten, so choose another place with -o")
    folder = temporary_beside(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        clear_leftovers(out.parent, out.name)
        folder.mkdir()
        yield folder
    except OSError as error:
        if error.errno in _FULL:
            raise InputError(
                f"the disk is full: {out} could not be written and nothing is left of it; free some space or choose"
                " another place with -o"
            ) from None
        raise InputError(f"{out} cannot be written ({error.strerror or error}); choose another place with -o") from None
    finally:
        remove_quietly(folder)


def temporary_beside(path: Path, ending: Literal["tmp", "part"] = "tmp") -> Path:
    """A hidden name beside `path` that is ours alone; `clear_leftovers` knows it."""
    return path.with_name(f".{path.name}.{_machine()}-{os.getpid()}.{ending}")


def remove_quietly(path: Path) -> None:
    """Clean up, a file or a folder, without a second complaint: what brought us here is the one to tell."""
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


def clear_leftovers(folder: Path, name: str | None = None, *, alone: bool = False) -> None:
    """Remove temporary files of processes that are gone from `folder`; of the file `name` alone if it is given.

    `alone`: nobody else writes there, because we hold its lock, so every temporary file is a leftover.
    """
    pattern = re.compile(rf"\.{'.+' if name is None else re.escape(name)}\.(?:([0-9a-f]{{8}})-)?(\d+)\.(?:tmp|part)")
    try:
        entries = os.listdir(folder)
    except OSError:
        return
    for entry in entries:
        match = pattern.fullmatch(entry)
        if match and (alone or (match[1] in (None, _machine()) and not _alive(int(match[2])))):
            remove_quietly(folder / entry)


def _machine() -> str:
    """Eight digits for this machine: on a shared disk another one's process may have our number."""
    return f"{zlib.crc32(socket.gethostname().encode()):08x}"


def _alive(process: int) -> bool:
    if process == os.getpid():
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it belongs to somebody else
        return True
    return True
