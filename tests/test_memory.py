"""Sizes are compared with memory before anything is allocated."""

from __future__ import annotations

import pytest

from mispair.data.config import ScenesConfig
from mispair.data.scenes import make_scenes
from mispair.errors import InputError
from mispair.memory import available_bytes, refuse_beyond_memory


def test_what_fits_passes_and_what_does_not_is_refused() -> None:
    there = available_bytes()
    assert there is not None
    assert there > 1_000_000
    refuse_beyond_memory(1000, "a little", "nothing to do")
    with pytest.raises(InputError, match=r"a lot needs 1,000,000.0 GB of memory and .* free; ask for less"):
        refuse_beyond_memory(10**15, "a lot", "ask for less")


def test_a_world_of_a_trillion_pictures_is_refused_at_once() -> None:
    with pytest.raises(InputError, match=r"data\.scenes\.pictures"):
        make_scenes(ScenesConfig(pictures=10**12), "train")
