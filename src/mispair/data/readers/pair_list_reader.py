"""The base of readers whose pairs can be listed: each says what it recognises and gives the list."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import replace

from mispair.data.config import DataConfig
from mispair.data.files.weights import read_weights
from mispair.data.readers.pair_list import PairList, list_splits_of, open_pair_list
from mispair.data.source import Source
from mispair.progress import Progress


class PairListReader(ABC):
    """A reader of one such format; `mispair.data.readers.protocol` says what its functions promise."""

    @abstractmethod
    def read(self, config: DataConfig) -> PairList:
        """All pairs of the data, with their splits where it has some."""

    def splits(self, config: DataConfig) -> list[str]:
        """The splits that can be opened, in the usual order; ["all"] where the data has none."""
        return list_splits_of(self.read(config), config)

    def open(
        self, config: DataConfig, split: str, *, features: bool = True, progress: Progress | None = None
    ) -> Source:
        """One split as it lies there."""
        return open_pair_list(_weighted(self.read(config), config), config, split)


def _weighted(pairs: PairList, config: DataConfig) -> PairList:
    """With the weights of `NAME.npy`, one per text, where the list has no place for them."""
    if config.weights is None or pairs.weights is not None:
        return pairs
    home = pairs.path if os.path.isdir(pairs.path) else pairs.path.parent
    file = home / f"{config.weights}.npy"
    return replace(pairs, weights=read_weights(file, len(pairs.images))) if os.path.isfile(file) else pairs
