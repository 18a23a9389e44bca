"""VSE: one vector per item and their cosine; mean pooling (VSE++) or generalised pooling (VSE-infinity).

What proves it: tests/models/test_vse.py, against pooling written out item by item.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, PositiveInt
from torch import Tensor, nn

from mispair.models.base import ModelConfig
from mispair.models.branches import BiGRU, WordTable, run_gru
from mispair.models.layers import blanked, xavier
from mispair.models.one_vector import OneVectorBackbone, as_one_part
from mispair.models.pooling import FeatureNorm, GeneralizedPool, MeanPool
from mispair.models.sizes import InputSizes
from mispair.types import Encoded


class VSEConfig(ModelConfig):
    """`words`: read texts as a sequence (gru) or as a bag, the cheapest; `pooling`: mean (VSE++) or gpo."""

    name: Literal["vse"] = "vse"
    embed: PositiveInt = 1024
    word_dim: PositiveInt = 300
    words: Literal["gru", "bag"] = "gru"
    pooling: Literal["mean", "gpo"] = "mean"
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0


class VSE(OneVectorBackbone):
    """Cosine of two pooled vectors; the score is the logit itself."""

    Config = VSEConfig
    config: VSEConfig
    presets: ClassVar = {"paper": VSEConfig, "small": lambda: VSEConfig(embed=512, words="bag")}

    def __init__(self, config: VSEConfig, sizes: InputSizes) -> None:
        super().__init__(config, sizes)
        self.embed = config.embed
        self.encodes_together = config.pooling == "gpo"  # its features are normalised over the batch
        self.images = _ImageSide(sizes.image_width, config)
        self.texts = _TextSide(sizes, config)

    def _encode_images(self, images: Tensor, mask: Tensor) -> Encoded:
        return as_one_part(self.images(blanked(images, mask), mask), mask)

    def _encode_texts(self, texts: Tensor, mask: Tensor) -> Encoded:
        return as_one_part(self.texts(texts, mask), mask)


class _ImageSide(nn.Module):
    """Mean region, projected (VSE++); or regions through a linear map plus a small network, pooled (VSE-infinity)."""

    def __init__(self, width: int, config: VSEConfig) -> None:
        super().__init__()
        self.project = xavier(width, config.embed)
        self.pool: nn.Module = MeanPool()
        self.inner: nn.Linear | None = None
        if config.pooling == "gpo":
            self.pool = GeneralizedPool()
            self.inner = nn.Linear(width, config.embed // 2)
            self.norm = FeatureNorm(config.embed // 2)
            self.outer = nn.Linear(config.embed // 2, config.embed)

    def forward(self, regions: Tensor, mask: Tensor) -> Tensor:
        if self.inner is None:
            mapped: Tensor = self.project(self.pool(regions, mask))  # the map is linear: pool first, map once
            return mapped
        features = self.project(regions) + self.outer(self.norm(self.inner(regions), mask).relu())
        pooled: Tensor = self.pool(features, mask)
        return pooled


class _TextSide(nn.Module):
    """Words or features to one vector: last hidden state, mean, or generalised pooling."""

    def __init__(self, sizes: InputSizes, config: VSEConfig) -> None:
        super().__init__()
        self.table: WordTable | None = None
        inputs = sizes.text_width or config.word_dim
        if sizes.vocabulary_size is not None:
            self.table = WordTable(sizes.vocabulary_size, config.word_dim, config.dropout)
        self.pool: nn.Module = GeneralizedPool() if config.pooling == "gpo" else MeanPool()
        self.last = config.words == "gru" and config.pooling == "mean"
        self.project: nn.Linear | None = None
        if config.words == "bag":
            self.project = xavier(inputs, config.embed)
        elif self.last:
            self.gru: nn.Module = nn.GRU(inputs, config.embed, batch_first=True)
        else:
            self.gru = BiGRU(inputs, config.embed)

    def forward(self, texts: Tensor, mask: Tensor) -> Tensor:
        parts = blanked(texts, mask) if self.table is None else self.table(texts)
        pooled: Tensor
        if self.project is not None and isinstance(self.pool, MeanPool):
            mapped: Tensor = self.project(self.pool(parts, mask))  # the mean leaves padding words out by itself
            return mapped
        parts = parts.masked_fill(~mask[..., None], 0.0)
        if self.project is not None:
            pooled = self.pool(self.project(parts), mask)
        elif self.last:
            assert isinstance(self.gru, nn.GRU)
            final = (mask.sum(1) - 1)[:, None, None].expand(-1, 1, self.gru.hidden_size)
            pooled = run_gru(self.gru, parts, mask).gather(1, final)[:, 0]
        else:
            pooled = self.pool(self.gru(parts, mask), mask)
        return pooled
