"""The mismatched images nearest to each mismatched text, by one vector per item.

Once an epoch the vectors of all mismatched images and texts are compared, and every text remembers the images nearest
to it. A step then compares its texts with these instead of whatever shares their batch.

Letters: G mismatched images, M texts or groups of texts that describe one picture, D width.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from mispair.functional.image_groups import group_means

Ids = NDArray[np.int64]


class NearestImages:
    """Mismatched images and the texts that may belong to them, as encoded at the beginning of an epoch."""

    def __init__(self, ids: Ids, image_row: Ids, text_row: Ids, nearest: Ids, images: Tensor, texts: Tensor) -> None:
        self.ids = ids  # (G,) a pair that shows each image
        self.image_row, self.text_row = image_row, text_row  # (N,) rows of `images` and `texts`; -1: not mismatched
        self.nearest = nearest  # (M, k) rows of `images`, nearest first
        self._rows = torch.from_numpy(np.stack([image_row, text_row]))
        # (G, D), (M, D), rounded as they are saved: a run that goes on must see the same numbers
        self.images, self.texts = images.half().float(), texts.half().float()

    @classmethod
    def gather(
        cls,
        mismatched: Ids,
        image_of: Ids,
        images: NDArray[Any],
        texts: NDArray[Any],
        together: bool,
        count: int,
        chunk: int = 2048,
    ) -> NearestImages:
        """From the vectors (N, D) of all pairs. `together`: the texts shown with one image are one group."""
        _, first, image_row = np.unique(image_of[mismatched], return_index=True, return_inverse=True)
        text_row = image_row if together else np.arange(len(mismatched))
        seen = normalize(torch.from_numpy(images[mismatched[first]].astype(np.float32)), dim=-1)
        read = torch.zeros(int(text_row.max()) + 1, texts.shape[1])
        read.index_add_(0, torch.from_numpy(text_row), torch.from_numpy(texts[mismatched].astype(np.float32)))
        read /= torch.from_numpy(np.bincount(text_row))[:, None]  # mean, not unit: groups that differ promise less
        home = np.empty(len(read), np.int64)
        home[text_row] = image_row
        count = min(count, len(seen) - 1) or 1
        nearest = np.empty((len(read), count), np.int64)
        for start in range(0, len(read), chunk):
            scores = read[start : start + chunk] @ seen.T
            scores[torch.arange(len(scores)), torch.from_numpy(home[start : start + chunk])] = -torch.inf
            nearest[start : start + chunk] = scores.topk(count).indices.numpy()
        rows = np.full((2, len(image_of)), -1)
        rows[:, mismatched] = image_row, text_row
        return cls(mismatched[first], rows[0], rows[1], nearest, seen, read)

    def around(self, ids: Ids, size: int) -> Ids:
        """Pairs that show the `size` images nearest to the texts of the pairs `ids`, each image once if they suffice.

        First every text's nearest, then every text's second, ...; then the images the texts are shown with.
        """
        wanted = self.nearest[self.text_row[ids]].T.reshape(-1)
        wanted = np.concatenate([wanted, self.image_row[ids], np.arange(len(self.ids))])
        _, first = np.unique(wanted, return_index=True)
        return np.asarray(self.ids[np.resize(wanted[np.sort(first)], size)])

    def similarity(self, images: Tensor, texts: Tensor) -> Tensor:
        """Cosines of the images of pairs (q,) with the texts, or groups of texts, of pairs (n,): (q, n)."""
        if self._rows.device != images.device:
            self._rows, self.images, self.texts = (t.to(images.device) for t in (self._rows, self.images, self.texts))
        return self.images[self._rows[0, images]] @ self.texts[self._rows[1, texts]].T

    def best(self) -> NDArray[np.float64]:
        """The cosine of every text or group with its nearest image, (M,)."""
        nearest = self.images[torch.from_numpy(self.nearest[:, 0])]
        return np.asarray((nearest * self.texts).sum(-1).double().numpy())

    def state(self) -> dict[str, Tensor]:
        numbers = {"ids": self.ids, "image_row": self.image_row, "text_row": self.text_row, "nearest": self.nearest}
        saved = {name: torch.from_numpy(value) for name, value in numbers.items()}
        return {**saved, "images": self.images.half(), "texts": self.texts.half()}

    @classmethod
    def restored(cls, state: dict[str, Tensor]) -> NearestImages:
        ids, image_row, text_row, nearest = (
            state[name].numpy() for name in ("ids", "image_row", "text_row", "nearest")
        )
        return cls(ids, image_row, text_row, nearest, state["images"], state["texts"])


def given_cosines(image_of: Ids, images: NDArray[Any], texts: NDArray[Any], together: bool) -> NDArray[np.float64]:
    """The cosine of every given pair, of its image with all its texts if they are taken `together`, (N,)."""
    cosines = np.einsum("nd,nd->n", images, texts, dtype=np.float64)
    return group_means(cosines, image_of) if together else cosines
