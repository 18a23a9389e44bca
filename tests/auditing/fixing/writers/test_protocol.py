"""What `mispair train` is told to read the same pictures or features again."""

from __future__ import annotations

from typing import Any

import pytest

from mispair.auditing.fixing.writers.protocol import reading_options
from mispair.data import ColumnsConfig, DataConfig


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, []),
        ({"features": "a.npy"}, ["--features", "a.npy"]),
        ({"features": "a.npy", "ids": "a.txt"}, ["--features", "a.npy", "--ids", "a.txt"]),
        ({"encoder": "basic"}, []),
        ({"encoder": "clip", "cells": True}, ["--encoder", "clip", "--cells"]),
        ({"allow_outside": True, "missing": "skip"}, ["--allow-outside", "--missing", "skip"]),
        ({"columns": ColumnsConfig(caption="title", id="n")}, ["--caption-column", "title"]),
    ],
)
def test_options_say_how_the_data_was_read(given: dict[str, Any], words: list[str]) -> None:
    config = DataConfig(path="pairs.csv").model_copy(update=given)
    assert reading_options(config) == words
    with_pictures = reading_options(config, images="photos")
    assert [word for word in with_pictures if word not in ("--images", "photos")] == words
    assert with_pictures[with_pictures.index("--images") + 1] == "photos"
