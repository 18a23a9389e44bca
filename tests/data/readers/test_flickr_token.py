"""Flickr's captions: a picture, its number, a tab and the words; any other line is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from mispair.data import DataConfig
from mispair.data.readers.flickr_token import FlickrTokens
from mispair.errors import InputError
from tests.data.samples import write_lines


def config(folder: Path, *lines: str) -> DataConfig:
    return DataConfig(path=str(write_lines(folder / "Flickr8k.token.txt", lines)))


def test_captions_keep_their_pictures_and_lines(tmp_path: Path) -> None:
    data = config(tmp_path, "a.jpg#0\ta dog", "", "a.jpg#1\ta cat ")
    assert FlickrTokens().recognises(data)
    pairs = FlickrTokens().read(data)
    assert (pairs.images, pairs.captions, pairs.ids) == (["a.jpg"] * 2, ["a dog", "a cat"], ["a.jpg#0", "a.jpg#1"])
    assert pairs.lines.tolist() == [1, 3]


@pytest.mark.parametrize("line", ["a.jpg#0 a dog", "a.jpg\ta dog", " #0\ta dog", "a.jpg#first\ta dog"])
def test_another_line_is_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(InputError, match=r"line 2: .*; expected captions as Flickr has them"):
        FlickrTokens().read(config(tmp_path, "a.jpg#0\ta dog", line))
