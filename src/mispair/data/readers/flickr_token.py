"""Flickr's caption files, Flickr8k.token.txt and results.token: `1000092795.jpg#0`, a tab and a caption per line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from mispair.data.config import DataConfig
from mispair.data.files.captions import not_utf8
from mispair.data.files.reading import read_lines
from mispair.data.readers.caption_json import CaptionEntry, pairs_of_entries
from mispair.data.readers.pair_list import PairList
from mispair.data.readers.pair_list_reader import PairListReader
from mispair.errors import InputError

_WHAT = "captions as Flickr has them: a picture's name, #, a number, a tab and a caption per line"


class FlickrTokens(PairListReader):
    """A file called .token or .token.txt."""

    def recognises(self, config: DataConfig) -> bool:
        return config.path.lower().endswith((".token", ".token.txt"))

    def read(self, config: DataConfig) -> PairList:
        return _read(config)


def _read(config: DataConfig) -> PairList:
    path = Path(config.path)
    lines = read_lines(path, _WHAT)
    entries: list[CaptionEntry] = []
    numbers: list[int] = []
    for number, line in enumerate(lines.lines, 1):
        if not line.strip():
            continue
        pair, tab, caption = line.partition("\t")
        image, mark, place = pair.rpartition("#")
        if not tab or not mark or not image.strip() or not place.strip().isdecimal():
            raise InputError(f"{path}, line {number}: {line[:40]!r}; expected {_WHAT}")
        entries.append(CaptionEntry(image.strip(), caption.strip(), None, pair.strip()))
        numbers.append(number)
    if not entries:
        raise InputError(f"{path} has no captions; expected {_WHAT}")
    pairs = pairs_of_entries(path, entries, config, f"{path.name}: Flickr's captions, {len(entries):,}")
    return replace(pairs, lines=np.array(numbers), findings=not_utf8(path, "all", lines.replaced))
