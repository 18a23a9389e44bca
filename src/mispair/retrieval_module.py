"""The base class of networks that score images against texts: `mispair.protocols.RetrievalModel` as an `nn.Module`."""

from __future__ import annotations

from torch import Tensor, nn

from mispair.errors import InputError
from mispair.types import Encoded


class RetrievalModule(nn.Module):
    """A network a method can train. Shapes and meaning of each function are those of `RetrievalModel`.

    Letters: N images or texts, R regions of F numbers, L words, T parts of an encoded item, D width.
    """

    encodes_together = False  # whether what an encoder makes of an item depends on the others of its batch
    starts_informed = False  # whether it ranks better than chance before its first step: then the start counts too

    @property
    def width(self) -> int:
        """D, for methods that put a layer of their own on encoded items."""
        raise InputError(f"{type(self).__name__} does not say how long its vectors are: give it a property `width`")

    def encode_images(self, images: Tensor, mask: Tensor) -> Encoded:
        """images (N, R, F), mask (N, R) -> Encoded (N, T, D)."""
        raise NotImplementedError

    def encode_texts(self, texts: Tensor, mask: Tensor) -> Encoded:
        """texts (N, L) word ids or (N, L, F') features, mask (N, L) -> Encoded (N, T, D)."""
        raise NotImplementedError

    def similarity(self, images: Encoded, texts: Encoded, *, sparse: bool = False) -> Tensor:
        """Raw logits of every image against every text, (n, m); `sparse`: few of them will have a gradient."""
        raise NotImplementedError

    def paired(self, images: Encoded, texts: Encoded, rows: Tensor, cols: Tensor) -> Tensor:
        """Raw logits of the listed cells only: image rows[k] against text cols[k], (k,)."""
        return self.similarity(images, texts)[rows, cols]

    def link(self, logits: Tensor) -> Tensor:
        """The score of a logit; monotone, any shape. By default the logit itself."""
        return logits

    def pool_images(self, images: Encoded) -> Tensor:
        """One unit vector per image, (N, D)."""
        raise NotImplementedError

    def pool_texts(self, texts: Encoded) -> Tensor:
        """One unit vector per text, (N, D)."""
        raise NotImplementedError
