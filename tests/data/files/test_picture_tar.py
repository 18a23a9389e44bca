"""Pictures in a tar: each read from its place; what cannot be read is broken, not fatal."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mispair.data.files.picture_tar import TarStore
from mispair.pictures.decode import Broken


def test_a_place_that_cannot_be_read_is_a_broken_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tar = tmp_path / "a.tar"
    tar.write_bytes(b"0123456789")
    store = TarStore((tar,))
    assert store.read((0, 2, 3)) == b"234"
    short = store.read((0, 8, 5))
    assert isinstance(short, Broken)
    assert "truncated" in short.reason

    def fails(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "pread", fails)
    broken = store.read((0, 2, 3))
    assert isinstance(broken, Broken)
    assert "Input/output error" in broken.reason
