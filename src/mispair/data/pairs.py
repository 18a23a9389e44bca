"""PairData: one split, ready to train or evaluate on. Batches come out of here, truth does not."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mispair.data.collate import Rows, as_rows, gather
from mispair.data.features import FeatureStore
from mispair.data.source import Source
from mispair.data.table import PairTable
from mispair.data.text import TokenStore, Vocabulary
from mispair.types import PairBatch


@dataclass(frozen=True, eq=False)
class PairData:
    """N pairs over I distinct images and M texts.

    Letters: B rows taken, R regions, F width, L words or steps of the second side.
    """

    name: str
    split: str
    table: PairTable
    images: FeatureStore  # (I, R, F)
    texts: TokenStore | FeatureStore  # M rows
    vocabulary: Vocabulary | None  # None when the second side has no words
    captions_per_image: int | None  # as found in the data; None when it varies
    image_of_text: NDArray[np.int64]  # (M,) the image each text belongs to, before any noise
    content_hash: str
    noise_hash: str | None = None
    sides: tuple[str, str] = ("image", "text")
    notes: tuple[str, ...] = ()  # what was recognised, folded, skipped or cut: one sentence each
    world: Any = field(default=None, repr=False)  # SceneSplit of generated data; holds pictures and full truth

    def __len__(self) -> int:
        return len(self.table)

    def batch(self, pair_ids: Rows, side: Literal["images", "texts", "both"] = "both") -> PairBatch:
        """The given pairs with these ids, (B,); where one side is asked for, the other is not read and empty."""
        ids = as_rows(pair_ids)
        nothing = torch.zeros(len(ids), 0), torch.zeros(len(ids), 0, dtype=torch.bool)
        images, image_mask = self.image_batch(self.table.image_rows[ids]) if side != "texts" else nothing
        texts, text_mask = self.text_batch(self.table.text_rows[ids]) if side != "images" else nothing
        return PairBatch(images, image_mask, texts, text_mask, torch.from_numpy(ids))

    def image_batch(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Images by row: features (B, R, F) float32, mask (B, R)."""
        return gather(self.images, rows)

    def text_batch(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Texts by row: word ids (B, L) int64 or features (B, L, F') float32, mask (B, L)."""
        return gather(self.texts, rows)


def content_hash(source: Source) -> str:
    """SHA-256 of captions and pairing in full and of the features by sample (see FeatureStore.fingerprint)."""
    digest = hashlib.sha256(np.ascontiguousarray(source.image_of_text, "<i8").tobytes())
    for store in (source.images, source.text_features):
        digest.update(b"-" if store is None else store.fingerprint().encode())
    for caption in source.captions or ():
        digest.update(caption.encode(errors="surrogatepass"))
        digest.update(b"\n")
    return digest.hexdigest()


def scene_truth(data: PairData) -> NDArray[np.bool_] | None:
    """(I, M): which texts are true of which images, for generated data; None where nobody can know."""
    return None if data.world is None else data.world.truth()[: len(data.images), : len(data.image_of_text)]
