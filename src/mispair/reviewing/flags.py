"""Pairs that looked wrong to somebody who searched: kept beside the decisions, so that a later review begins there."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

from mispair.errors import InputError

FILE = "flagged.jsonl"
_MOST_BYTES = 64 << 20


class FlagLog:
    """One line per pair, appended and flushed to disk. Lines of another audit and halves of lines are passed over."""

    def __init__(self, path: Path, audit: str, pairs: int) -> None:
        self.path, self._audit, self._lock = path, audit, threading.Lock()
        self._flagged = dict.fromkeys(pair for pair in _read(path, audit) if pair < pairs)

    @property
    def pairs(self) -> list[int]:
        """The pairs that were flagged, in that order."""
        with self._lock:
            return list(self._flagged)

    def add(self, pair: int) -> None:
        """Keep a pair; when this returns it is on disk.

        Raises:
            InputError: the file cannot be written.
        """
        with self._lock:
            if pair in self._flagged:
                return
            try:
                with open(self.path, "ab") as file:
                    file.write(b"\n" * _is_cut(self.path) + json.dumps([self._audit, pair]).encode() + b"\n")
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                raise InputError(f"{self.path} cannot be written ({error.strerror}); the pair was not sent") from None
            self._flagged[pair] = None


def _read(path: Path, audit: str) -> list[int]:
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is not an ordinary file, so no flagged pair could be kept there; move it away")
    if not path.exists() or path.stat().st_size > _MOST_BYTES:
        return []
    pairs = []
    for line in path.read_bytes().splitlines():
        try:
            of, pair = json.loads(line)
        except (ValueError, TypeError, RecursionError):
            continue
        if of == audit and type(pair) is int and pair >= 0:
            pairs.append(pair)
    return pairs


def _is_cut(path: Path) -> bool:
    """Whether a kill left half a line at the end."""
    content = path.read_bytes()
    return bool(content) and not content.endswith(b"\n")
