"""What a reader is: it recognises a data set, lists its splits and opens one of them as a `Source`."""

from __future__ import annotations

from typing import Protocol

from mispair.data.config import DataConfig
from mispair.data.source import Source
from mispair.progress import Progress


class Reader(Protocol):
    """One format. Readers are asked in the order of `dispatch.READERS`; the first that recognises the data reads it."""

    def recognises(self, config: DataConfig) -> bool:
        """Whether `config.path` is of this format: a look at names, not at contents."""

    def splits(self, config: DataConfig) -> list[str]:
        """The splits that can be opened, in the usual order; ["all"] where the data has none."""

    def open(
        self, config: DataConfig, split: str, *, features: bool = True, progress: Progress | None = None
    ) -> Source:
        """One split as it lies there.

        Args:
            features: False where only the pairing is wanted; features that would have to be made may then be missing.
            progress: told how far the making is.

        Raises:
            InputError: what cannot be used, in one sentence.
        """


SPLIT_ORDER = ("train", "dev", "val", "test", "testall")


def in_order(splits: set[str]) -> list[str]:
    """The splits in their usual order, unknown names last and by spelling."""
    return sorted(splits, key=lambda name: (SPLIT_ORDER.index(name) if name in SPLIT_ORDER else 99, name))
