"""PairData: one split, ready to train or evaluate on. Batches come out of here, truth does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from mispair.data.collate import Rows, as_rows, gather
from mispair.data.features import FeatureStore
from mispair.data.pair_table import PairTable
from mispair.data.prepared_pictures import PreparedPictures
from mispair.data.vocabulary import PAD, TokenStore, Vocabulary
from mispair.types import PairBatch


@dataclass(frozen=True, eq=False)
class PairData:
    """N pairs over I distinct images and M texts.

    Letters: B rows taken, R regions, F width, L words or steps of the second side.
    """

    name: str
    split: str
    table: PairTable
    images: FeatureStore | PreparedPictures  # (I, R, F)
    texts: TokenStore | FeatureStore  # M rows
    vocabulary: Vocabulary | None  # None when the second side has no words, or pieces of an encoder
    captions_per_image: int | None  # as found in the data; None when it varies
    image_of_text: NDArray[np.int64]  # (M,) the image each text belongs to, before any noise
    content_hash: str  # of everything in it before noise (mispair.data.identity)
    joint: FeatureStore | None = None  # (I, F') the images in the space of the texts, by a model that is not trained
    noise_hash: str | None = None
    sides: tuple[str, str] = ("image", "text")
    no_picture: Mapping[str, str] = field(default_factory=dict)  # images left out since theirs cannot be read, and why
    notes: tuple[str, ...] = ()  # what was recognised, folded, skipped or cut: one sentence each
    world: Any = field(default=None, repr=False)  # SceneSplit of generated data; holds pictures and full truth

    def __len__(self) -> int:
        return len(self.table)

    @property
    def owners(self) -> NDArray[np.int64]:
        """(M,) the image each text counts as the caption of where recalls are taken: in a noisy dev the given one."""
        if self.split != "dev" or self.noise_hash is None:
            return self.image_of_text
        owners: NDArray[np.int64] = self.image_of_text.copy()
        owners[self.table.text_rows] = self.table.image_rows
        return owners

    def batch(
        self, pair_ids: Rows, side: Literal["images", "texts", "both"] = "both", share: slice = slice(None)
    ) -> PairBatch:
        """The given pairs with these ids, (B,); where one side is asked for, the other is not read and empty.

        share: read the features of these only, padded as those of the whole batch would be.
        """
        ids = as_rows(pair_ids)
        mine = ids[share]
        nothing = torch.zeros(len(mine), 0), torch.zeros(len(mine), 0, dtype=torch.bool)
        images, image_mask = self.image_batch(self.table.image_rows[mine]) if side != "texts" else nothing
        texts, text_mask = self.text_batch(self.table.text_rows[mine]) if side != "images" else nothing
        if side != "images" and isinstance(self.texts, TokenStore) and len(mine) < len(ids):
            missing = self.texts.longest(self.table.text_rows[ids]) - texts.shape[1]
            texts, text_mask = pad(texts, (0, missing), value=PAD), pad(text_mask, (0, missing))
        return PairBatch(images, image_mask, texts, text_mask, torch.from_numpy(ids))

    def image_batch(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Images by row: features (B, R, F) float32, mask (B, R)."""
        return gather(self.images, rows)

    def text_batch(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Texts by row: word ids (B, L) int64 or features (B, L, F') float32, mask (B, L)."""
        return gather(self.texts, rows)


def scene_truth(data: PairData) -> NDArray[np.bool_] | None:
    """(I, M): which texts are true of which images, for generated data; None where nobody can know."""
    return None if data.world is None else data.world.truth()[: len(data.images), : len(data.image_of_text)]
