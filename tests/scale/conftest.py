"""Fewer landmarks: what is tested does not depend on how many there are. And one Ray cluster for all tests."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import pytest

from mispair.errors import InputError
from mispair.scale import frame


@pytest.fixture(autouse=True)
def _few_landmarks(request, monkeypatch):
    if "cluster" not in request.fixturenames:  # its workers are other processes, with as many as usual
        monkeypatch.setattr(frame, "LANDMARKS", 512)


@pytest.fixture(scope="session")
def _ray() -> Iterator[object]:
    pytest.importorskip("ray")
    from mispair.workflows.ray_engine import connected

    os.environ["OMP_NUM_THREADS"] = "1"
    with contextlib.ExitStack() as stack:
        for left in (2, 1, 0):  # Ray gives its own node half a minute to start, which a busy machine may not keep
            try:
                cluster = stack.enter_context(connected(None, 2))
                break
            except InputError:
                if left == 0:
                    raise
        yield cluster


@pytest.fixture
def cluster(_ray):
    return _ray
