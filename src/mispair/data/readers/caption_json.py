"""What the readers of caption JSON share: entries to a list of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mispair.data.config import DataConfig
from mispair.data.readers.pair_list import PairList
from mispair.data.readers.pictures_of_table import find_pictures


@dataclass(frozen=True, slots=True)
class CaptionEntry:
    """One caption as a JSON file has it."""

    image: str  # file name of the picture, with folders where the file gives them
    caption: str
    split: str | None
    id: str


def pairs_of_entries(path: Path, entries: list[CaptionEntry], config: DataConfig, note: str) -> PairList:
    """The entries as a list of pairs, with their pictures where those are found."""
    images = [entry.image for entry in entries]
    rows = np.arange(len(entries))
    splits = [entry.split for entry in entries if entry.split is not None]
    return PairList(
        path=path,
        images=images,
        captions=[entry.caption for entry in entries],
        splits=splits if len(splits) == len(entries) else None,
        ids=[entry.id for entry in entries],
        lines=rows + 1,
        rows=rows,
        notes=(note,),
        pictures=find_pictures(config, path, images),
    )
