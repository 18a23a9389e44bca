"""One process works in a folder at a time. The system releases the lock when the process ends, however it ends."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mispair.atomic import make_folder
from mispair.errors import InputError


@contextmanager
def claimed(lock: Path, what: str) -> Iterator[None]:
    """Hold `lock`, a file of the folder to work in, while inside; the folder is made where it is missing.

    Raises InputError that says which process holds it (`what` it does, for instance "mispair train").
    """
    make_folder(lock.parent)
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise InputError(f"{lock.parent} cannot be written: {error.strerror}; choose another folder with -o") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 200, 0).decode(errors="replace").strip()
            raise InputError(
                f"{lock.parent} is in use by {_printable(holder) or 'another process'}; "
                "wait for it, or choose another folder with -o"
            ) from None
        except OSError:  # a file system without locks: better to work than to refuse
            yield
            return
        with suppress(OSError):  # on a full disk nobody reads who holds it, and it is held all the same
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{what} (process {os.getpid()} on {socket.gethostname()})\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _printable(text: str) -> str:
    return "".join(c for c in text if c.isprintable())
