"""A folder is held by one process, whether or not the disk has room to say by which."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from mispair.errors import InputError
from mispair.runtime.lock import claimed


def test_a_lock_on_a_full_disk_holds_without_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    lock = tmp_path / "run" / ".lock"
    refused = pytest.raises(InputError, match="is in use by another process; wait for it")
    with claimed(lock, "mispair train"), refused, claimed(lock, "mispair train"):
        pass
    with claimed(lock, "mispair train"):
        assert lock.is_file()
