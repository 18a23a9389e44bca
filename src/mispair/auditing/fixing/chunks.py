"""A file in stretches whose ends depend on the bytes around them, not on where they lie.

Two files that share a picture or a row then share stretches, wherever each has it: content-defined chunking with a gear
hash (Xia et al., FastCDC, 2016), whose 32-byte windows are computed for a whole piece at a time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

_PIECE = 1 << 20
_LONGEST = 4 << 20  # of a stretch without any end: zeros
_GEAR = np.random.default_rng(0).integers(0, 1 << 32, 256, np.uint32)
_BITS = 12  # a stretch has 4 kB on average, less than most pictures


def chunks(file: IO[bytes]) -> Iterator[bytes]:
    """The content of `file`, a stretch at a time; together they are the file."""
    rest = b""
    while piece := file.read(_PIECE):
        data = rest + piece
        start = 0
        for end in _ends(np.frombuffer(data, np.uint8)).tolist():
            yield data[start:end]
            start = end
        rest = data[start:]
        if len(rest) >= _LONGEST:
            yield rest
            rest = b""
    if rest:
        yield rest


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal; it is never in memory as a whole."""
    whole = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            whole.update(piece)
    return whole.hexdigest()


def _ends(data: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Where stretches end: after each byte at which the hash of the 32 bytes before has its upper bits all zero."""
    hashed = _GEAR[data]
    for shift in (1, 2, 4, 8, 16):  # each step joins two windows: sum of GEAR[byte k back] << k
        hashed[shift:] = (hashed[:-shift] << np.uint32(shift)) + hashed[shift:]
    return np.flatnonzero(hashed >> np.uint32(32 - _BITS) == 0) + 1
