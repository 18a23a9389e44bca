from __future__ import annotations

import os
from pathlib import Path

import pytest

from mispair.ordinary_file import read_ordinary


@pytest.mark.timeout(10)
def test_what_could_be_read_for_ever_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    assert read_ordinary(tmp_path / "file") == read_ordinary(tmp_path / "link", most=7) == b"content"
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    for name in ("pipe", "device"):
        with pytest.raises(OSError, match="not an ordinary file"):
            read_ordinary(tmp_path / name)
    with pytest.raises(OSError, match="far larger"):
        read_ordinary(tmp_path / "file", most=6)
    for name in ("none", "."):
        with pytest.raises(OSError, match=r"No such file|Is a directory"):
            read_ordinary(tmp_path / name)
