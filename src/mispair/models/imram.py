"""IMRAM: iterative matching with recurrent attention memory (Chen et al., CVPR 2020).

The slow version that proves it: `imram_scores` in tests/model_oracles.py, one pair at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Literal

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from mispair.distributed import share_columns
from mispair.models.base import ModelConfig, check_encoded
from mispair.models.branches import Sequencer
from mispair.models.kernels.caption_groups import Group, by_length, in_order
from mispair.models.kernels.iterate import Contexts, MatchingSettings, Queries, iterate
from mispair.models.kernels.recompute import score
from mispair.models.kernels.similarity_vectors import block_rows
from mispair.models.kernels.unit_length import l2
from mispair.models.layers import masked_mean
from mispair.models.region_word import RegionWordBackbone
from mispair.models.sizes import InputSizes
from mispair.models.stand_in import StandIn
from mispair.types import Encoded

Mode = Literal["text", "image", "full"]


class IMRAMConfig(ModelConfig):
    """`mode`: words look at regions, regions at words, or both; `query_norm`: unit queries after each look."""

    name: Literal["imram"] = "imram"
    mode: Mode = "full"
    embed: PositiveInt = 1024
    word_dim: PositiveInt = 300
    steps: PositiveInt = 3
    smooth: PositiveFloat = 9.0
    text: Sequencer = "gru"
    query_norm: bool = False
    stand_in: PositiveInt | None = 256  # width of the cosine that learns along for two-stage scoring; None: none


class IMRAM(RegionWordBackbone):
    """Sum of the mean cosines of K looks, in one or both directions; the score is the sum itself."""

    Config = IMRAMConfig
    presets: ClassVar = {"paper": IMRAMConfig, "small": lambda: IMRAMConfig(embed=256)}

    def __init__(self, config: IMRAMConfig, sizes: InputSizes) -> None:
        super().__init__(config, sizes, embed=config.embed, word_dim=config.word_dim, sequencer=config.text)
        self.mode = config.mode
        self.matching = MatchingSettings(config.steps, config.smooth, config.query_norm)
        # Columns: the query, then the context. Rows: the gate, then the candidate. One map of both, as both read both.
        kinds = ("text", "image") if config.mode == "full" else (config.mode,)
        self.memory = nn.ModuleDict({kind: nn.Linear(2 * config.embed, 2 * config.embed) for kind in kinds})
        self.stand_in = StandIn(config.embed, config.stand_in) if config.stand_in else None

    def link(self, logits: Tensor) -> Tensor:
        """The sum of cosines is the score."""
        return logits

    def pool_images(self, images: Encoded) -> Tensor:
        """The stand-in's vector, or the mean region at unit length when there is no stand-in."""
        pooled = self.pooled_images(images)
        return l2(pooled) if self.stand_in is None else self.stand_in.images(pooled)

    def pool_texts(self, texts: Encoded) -> Tensor:
        """The stand-in's vector, or the mean word at unit length when there is no stand-in."""
        pooled = self.pooled_texts(texts)
        return l2(pooled) if self.stand_in is None else self.stand_in.texts(pooled)

    def pooled_images(self, images: Encoded) -> Tensor:
        """What the stand-in reads: the mean region, (N, D)."""
        return masked_mean(images.values, images.mask)

    def pooled_texts(self, texts: Encoded) -> Tensor:
        """What the stand-in reads: the mean word, (N, D)."""
        return masked_mean(texts.values, texts.mask)

    def similarity(self, images: Encoded, texts: Encoded, *, sparse: bool = False) -> Tensor:
        """Sums of cosines of every image against every text, (n, m)."""
        check_encoded(images, texts, self.embed)
        shared = share_columns(texts.mask.sum(1))
        own_texts = texts if shared is None else texts.take(shared.mine)
        plan = by_length(own_texts.mask, 128 if texts.mask.device.type == "cpu" else 1024)
        order, sizes = torch.cat([group.columns for group in plan]), [len(group.columns) for group in plan]
        sides = [torch.split(t[order], sizes) for t in self._text_side(own_texts)]
        seen = self._image_side(images)
        parts = [
            self._score(seen, [t[None] for t in _cut(own, group)], group)
            for *own, group in zip(*sides, plan, strict=True)
        ]
        logits = in_order(parts, plan, dim=1)
        logits = logits if shared is None else shared.whole(logits, 1)
        if self.stand_in is not None and self.training and torch.is_grad_enabled():
            logits = self.stand_in.follow(
                logits, self.stand_in.cosines(self.pooled_images(images), self.pooled_texts(texts))
            )
        return logits

    def paired(self, images: Encoded, texts: Encoded, rows: Tensor, cols: Tensor) -> Tensor:
        """Sums of cosines of the listed cells, (k,)."""
        check_encoded(images, texts, self.embed)
        if not len(rows):
            return images.values.new_zeros(0)
        plan = by_length(texts.mask[cols], 1 << 11)
        ours, theirs = self._image_side(images), self._text_side(texts)
        logits = []
        for group in plan:
            mine, own = rows[group.columns], [t[cols[group.columns]] for t in theirs]
            logits.append(self._score([x[mine] for x in ours], [t[:, None] for t in _cut(own, group)], group)[:, 0])
        return in_order(logits, plan, dim=0)

    def _score(self, images: Sequence[Tensor], texts: Sequence[Tensor], group: Group) -> Tensor:
        per_pair = max(group.length, images[0].shape[1])
        step = max(1, block_rows(images[0].device, images[0].shape[-1]) // (per_pair * texts[0].shape[1]))
        return score(partial(_block, self.mode, self.matching), images, texts, self._weights(), step)

    def _weights(self) -> list[Tensor]:
        """Query half (2D, D) and bias (2D,) of each direction's map."""
        return [p for kind in self.memory for p in (self._half(kind, "query"), self._map(kind).bias)]

    def _image_side(self, images: Encoded) -> list[Tensor]:
        """Regions, mask, Gram, then what each direction needs of them, computed once: contexts, then queries."""
        return self._side(images, {"text": "context", "image": "query"})

    def _text_side(self, texts: Encoded) -> list[Tensor]:
        return self._side(texts, {"text": "query", "image": "context"})

    def _side(self, items: Encoded, roles: dict[str, Literal["query", "context"]]) -> list[Tensor]:
        maps = [items.values @ self._half(kind, roles[kind]).T for kind in self.memory]
        return [items.values, items.mask, torch.bmm(items.values, items.values.mT), *maps]

    def _half(self, kind: str, role: Literal["query", "context"]) -> Tensor:
        weight = self._map(kind).weight
        return weight[:, : self.embed] if role == "query" else weight[:, self.embed :]

    def _map(self, kind: str) -> nn.Linear:
        layer = self.memory[kind]
        assert isinstance(layer, nn.Linear)
        return layer


def _cut(side: Sequence[Tensor], group: Group) -> list[Tensor]:
    """A group's text-side tensors at its length; the Gram matrix is cut on both axes."""
    out = [t[:, : group.length] for t in side]
    out[2] = out[2][:, :, : group.length]
    return out


def _block(
    mode: Mode, settings: MatchingSettings, images: Sequence[Tensor], texts: Sequence[Tensor], weights: Sequence[Tensor]
) -> Tensor:
    """Logits (n, k) of images (n, ...) against texts (b, k, ...)."""
    regions, region_mask, region_gram, *region_maps = images
    words, word_mask, word_gram, *word_maps = texts
    total = regions.new_zeros(())
    if mode in ("text", "full"):
        contexts = Contexts(regions, region_gram, region_maps[0], region_mask)
        total = total + iterate(contexts, Queries(words, word_maps[0], word_mask), weights[0], weights[1], settings)
    if mode in ("image", "full"):
        b, k = words.shape[:2]
        flat = [t.reshape(b * k, *t.shape[2:]) for t in (words, word_gram, word_maps[-1], word_mask)]
        own = [x[None] if b == 1 else x[:, None] for x in (regions, region_maps[-1], region_mask)]
        logits = iterate(Contexts(*flat), Queries(*own), weights[-2], weights[-1], settings)
        total = total + (logits.T if b == 1 else logits)
    return total
