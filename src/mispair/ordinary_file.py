"""Reading a file that somebody else may have put there: a pipe or a device in its place would be read for ever."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

NOTES = 16 << 20  # bytes of a file that says a few things in JSON or YAML, and far more than it takes


def read_ordinary(path: Path, most: int | None = NOTES) -> bytes:
    """The content of an ordinary file of at most so many bytes; OSError for anything else, without waiting."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not an ordinary file", str(path))
        if most is not None and status.st_size > most:
            raise OSError(errno.EFBIG, "it is far larger than such a file can be", str(path))
        return file.read()
