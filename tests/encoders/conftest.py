"""Models of the hub with tiny random weights, each made once for a file of tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[str, Path] = {}

    def make(family: str) -> Path:
        if family not in made:
            made[family] = tmp_path_factory.mktemp("hub") / family
            getattr(pytest.importorskip("tests.encoders.hubs"), family)(made[family])
        return made[family]

    return make
