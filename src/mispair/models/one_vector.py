"""Backbones that encode an item as one unit vector: a score is a cosine, and the vector stands for itself."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import normalize

from mispair.models.base import Backbone, check_encoded
from mispair.types import Encoded


class OneVectorBackbone(Backbone):
    """Encoded items have one part, T = 1; a subclass makes the vectors, and may scale the cosine in `link`."""

    def similarity(self, images: Encoded, texts: Encoded, *, sparse: bool = False) -> Tensor:
        """Cosines of every image against every text, (n, m)."""
        check_encoded(images, texts, self.embed)
        return images.values[:, 0] @ texts.values[:, 0].T

    def paired(self, images: Encoded, texts: Encoded, rows: Tensor, cols: Tensor) -> Tensor:
        """Cosines of the listed cells, (k,)."""
        check_encoded(images, texts, self.embed)
        return (images.values[rows, 0] * texts.values[cols, 0]).sum(-1)

    def pool_images(self, images: Encoded) -> Tensor:
        """The vector itself, (N, D)."""
        return images.values[:, 0]

    def pool_texts(self, texts: Encoded) -> Tensor:
        """The vector itself, (N, D)."""
        return texts.values[:, 0]


def as_one_part(vectors: Tensor, mask: Tensor) -> Encoded:
    """Vectors (N, D) at unit length, as items of one part; `mask` (N, ...) only says where and how many."""
    return Encoded(normalize(vectors, dim=-1)[:, None], mask.new_ones(len(mask), 1))
