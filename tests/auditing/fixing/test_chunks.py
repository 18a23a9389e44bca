"""Stretches of a file: together they are the file, and what two files share they share wherever it lies."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import numpy as np
import pytest

from mispair.auditing.fixing.chunks import chunks, sha256


@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 65_537, 3_000_001])
def test_nothing_is_lost(size: int) -> None:
    data = np.random.default_rng(size).bytes(size)
    found = list(chunks(io.BytesIO(data)))
    assert b"".join(found) == data
    assert all(found)
    if size > 1_000_000:
        assert 2_000 < size / len(found) < 8_000


def test_what_is_shared_is_found_wherever_it_lies() -> None:
    noise = np.random.default_rng(0)
    shared = noise.bytes(2_500_000)
    one, other = (set(chunks(io.BytesIO(noise.bytes(start) + shared))) for start in (0, 12_345))
    assert sum(map(len, one & other)) > 0.98 * len(shared)


def test_a_file_of_zeros_comes_in_pieces() -> None:
    assert max(map(len, chunks(io.BytesIO(bytes(20 << 20))))) <= 5 << 20


@pytest.mark.parametrize("size", [0, 5, (1 << 20) + 3])
def test_the_sum_of_a_file_is_that_of_its_bytes(tmp_path: Path, size: int) -> None:
    data = np.random.default_rng(size).bytes(size)
    (tmp_path / "a").write_bytes(data)
    assert sha256(tmp_path / "a") == hashlib.sha256(data).hexdigest()
