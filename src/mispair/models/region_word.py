"""Backbones that compare regions with words: both sides stay sequences of unit vectors until they are scored."""

from __future__ import annotations

from torch import Tensor

from mispair.models.base import Backbone, ModelConfig
from mispair.models.branches import RegionEncoder, Sequencer, TextEncoder
from mispair.models.sizes import InputSizes
from mispair.types import Encoded


class RegionWordBackbone(Backbone):
    """The two encoders; a subclass scores what they make."""

    def __init__(
        self,
        config: ModelConfig,
        sizes: InputSizes,
        *,
        embed: int,
        word_dim: int,
        sequencer: Sequencer,
        dropout: float = 0.0,
    ) -> None:
        """`dropout`: of word vectors; features of texts are taken as they are."""
        super().__init__(config, sizes)
        self.embed = embed
        self.regions = RegionEncoder(sizes.image_width, embed)
        self.words = TextEncoder(
            vocabulary=sizes.vocabulary_size,
            width=sizes.text_width,
            word_dim=word_dim,
            embed=embed,
            sequencer=sequencer,
            dropout=dropout if sizes.vocabulary_size else 0.0,
        )

    def _encode_images(self, images: Tensor, mask: Tensor) -> Encoded:
        return Encoded(self.regions(images, mask), mask)

    def _encode_texts(self, texts: Tensor, mask: Tensor) -> Encoded:
        return Encoded(self.words(texts, mask), mask)
