"""Encoders of the two sides: regions by projection; words or sequences by a bidirectional GRU or a projection.

The slow versions that prove it: `encode_regions` and `encode_words` in tests/model_oracles.py.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from mispair.models.kernels.gru import run_packed
from mispair.models.kernels.unit_length import l2
from mispair.models.layers import Dropout, blanked, xavier

Sequencer = Literal["gru", "linear"]


class RegionEncoder(nn.Module):
    """Linear, then unit length per region: images (N, R, F) -> (N, R, D), zeros where masked."""

    def __init__(self, width: int, embed: int) -> None:
        super().__init__()
        self.project = xavier(width, embed)

    def forward(self, images: Tensor, mask: Tensor) -> Tensor:
        # A masked slot may hold anything, a NaN included, so it is overwritten: a product with 0 would keep a NaN.
        return l2(blanked(self.project(blanked(images, mask)), mask))


class TextEncoder(nn.Module):
    """Words (embedded, dropped out) or features, read as a sequence or one by one, unit length: -> (N, L, D)."""

    def __init__(
        self,
        *,
        vocabulary: int | None,
        width: int | None,
        word_dim: int,
        embed: int,
        sequencer: Sequencer = "gru",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embed = WordTable(vocabulary, word_dim, dropout) if vocabulary is not None else None
        inputs = word_dim if vocabulary is not None else width
        assert inputs is not None
        self.gru = BiGRU(inputs, embed) if sequencer == "gru" else None
        self.project = xavier(inputs, embed) if sequencer == "linear" else None

    def forward(self, texts: Tensor, mask: Tensor) -> Tensor:
        parts = texts if self.embed is None else self.embed(texts)
        if self.gru is not None:
            return l2(self.gru(parts, mask))
        assert self.project is not None
        return l2(blanked(self.project(blanked(parts, mask)), mask))


class WordTable(nn.Module):
    """Word vectors from U(-0.1, 0.1) with dropout; no padding row, because the mask hides padding."""

    def __init__(self, vocabulary: int, word_dim: int, dropout: float) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, word_dim)
        nn.init.uniform_(self.table.weight, -0.1, 0.1)
        self.dropout = Dropout(dropout)

    def forward(self, words: Tensor) -> Tensor:
        out: Tensor = self.dropout(self.table(words))
        return out


class BiGRU(nn.Module):
    """One-layer GRU read in both directions, the two averaged: (N, L, F) -> (N, L, D)."""

    def __init__(self, inputs: int, embed: int) -> None:
        super().__init__()
        self.ahead = nn.GRU(inputs, embed, batch_first=True)
        self.back = nn.GRU(inputs, embed, batch_first=True)

    def forward(self, parts: Tensor, mask: Tensor) -> Tensor:
        return (run_gru(self.ahead, parts, mask) + run_gru(self.back, parts, mask, backwards=True)) / 2


def run_gru(gru: nn.GRU, x: Tensor, mask: Tensor, backwards: bool = False) -> Tensor:
    """Hidden states (N, L, D) of a one-way GRU; zeros beyond a sequence's length.

    On an accelerator the library's own kernel, over the padding too, which comes after the words and cannot reach
    them: that needs no lengths on the host (a packed sequence does), so nothing waits for the device.
    """
    if x.device.type == "cpu" and not torch.is_autocast_enabled("cpu"):
        return run_packed(gru, x, mask, backwards)
    x = blanked(x, mask)
    hidden: Tensor = gru(turn_round(x, mask) if backwards else x)[0]
    return blanked(turn_round(hidden, mask) if backwards else hidden, mask)


def turn_round(x: Tensor, mask: Tensor) -> Tensor:
    """Each sequence of x (N, L, F) backwards within its own length; padding stays where it is."""
    position = torch.arange(x.shape[1], device=x.device)
    source = mask.sum(1, keepdim=True) - 1 - position
    source = torch.where(source >= 0, source, position)
    return x.gather(1, source[..., None].expand_as(x))
