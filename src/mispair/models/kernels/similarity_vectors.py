"""Similarity vectors of every image-text pair of a group: one per word, one for the whole (SGRAF, section 3.2).

s_t = l2(W_loc (c_t - w_t)^2 + b), s_0 = l2(W_glo (g_v - g_t)^2 + b), stacked with the global node first. The
backward keeps the dot products and the result, recomputes the contexts, and looks at the incoming gradient: cells
without gradient cost nothing when they are the majority (hardest-negative losses).

The slow version that proves it: `similarity_nodes` in tests/model_oracles.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mispair.models.kernels.attention import attend, attend_backward, differences, dots
from mispair.models.kernels.unit_length import EPS, l2_backward

SPARSE = 0.25  # below this share of cells with gradient, the cells are packed and computed alone


@dataclass(frozen=True, slots=True)
class GridInputs:
    """Images and texts whose cells are scored, all or some of them; order as `SimilarityVectors.apply`."""

    regions: Tensor  # (n, R, D)
    gram: Tensor  # (n, R, R)
    words: Tensor  # (b, k, L, D), b = 1 (grid) or n (pairs)
    image_global: Tensor  # (n, D)
    text_global: Tensor  # (b, k, D)
    region_mask: Tensor | None  # (n, R)

    def tensors(self) -> tuple[Tensor | None, ...]:
        """All of them, in order."""
        return self.regions, self.gram, self.words, self.image_global, self.text_global, self.region_mask

    def images(self, part: slice) -> GridInputs:
        """The images of `part`, with their own texts when every image has its own."""
        own = part if self.words.shape[0] > 1 else slice(None)
        return GridInputs(
            self.regions[part],
            self.gram[part],
            self.words[own],
            self.image_global[part],
            self.text_global[own],
            None if self.region_mask is None else self.region_mask[part],
        )

    def pairs(self, rows: Tensor, cols: Tensor) -> GridInputs:
        """The listed cells of a grid as a list of pairs."""
        return GridInputs(
            self.regions[rows],
            self.gram[rows],
            self.words[0, cols, None],
            self.image_global[rows],
            self.text_global[0, cols, None],
            None if self.region_mask is None else self.region_mask[rows],
        )

    def parts(self, rows: int) -> list[slice]:
        """Cut the images so that a part has about `rows` (image, word) rows: the block then stays in the cache."""
        n, words = self.regions.shape[0], self.words.shape[1] * self.words.shape[2]
        step = max(1, rows // words)
        return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def block_rows(device: torch.device, width: int) -> int:
    """(image, word) rows of one block of `width` numbers each: cache-sized on a CPU, large elsewhere."""
    return max(1, (1 << 20) // width) if device.type == "cpu" else 1 << 16


def vectors(inputs: GridInputs, maps: Sequence[Tensor], smooth: float) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Similarity vectors (n, k, L+1, S), their lengths before l2 (n, k, L+1, 1), and the dot products by part.

    `maps`: weight (S, D) and bias (S,) of the local map, then of the global one.
    """
    w_loc, b_loc, w_glo, b_glo = maps
    n, (_, k, length, _), s = inputs.regions.shape[0], inputs.words.shape, w_loc.shape[0]
    out = inputs.regions.new_empty(n, k, length + 1, s)
    norms = inputs.regions.new_empty(n, k, length + 1, 1)
    raws = []
    for part in inputs.parts(block_rows(out.device, inputs.regions.shape[-1])):
        block = inputs.images(part)
        raw = dots(block.regions, block.words)
        squares = differences(attend(raw, block.gram, block.region_mask, smooth), block.regions, block.words).square_()
        _unit(squares, w_loc, b_loc, out[part, :, 1:], norms[part, :, 1:])
        _unit(
            (block.image_global[:, None] - block.text_global).square_(),
            w_glo,
            b_glo,
            out[part, :, 0],
            norms[part, :, 0],
        )
        raws.append(raw)
    return out, norms, raws


def _unit(x: Tensor, weight: Tensor, bias: Tensor, out: Tensor, norms: Tensor) -> None:
    """Write l2(W x + b) into `out` and the length into `norms`."""
    z = torch.addmm(bias, x.reshape(-1, x.shape[-1]), weight.T).view(out.shape)
    norm = torch.linalg.vector_norm(z, dim=-1, keepdim=True)
    norms.copy_(norm)
    torch.div(z, norm + EPS, out=out)


class _Sums:
    """Gradients gathered over the blocks of one backward; `whole`: what belongs to images is written, not added."""

    def __init__(self, inputs: GridInputs, w_loc: Tensor, w_glo: Tensor, whole: bool) -> None:
        start = torch.empty_like if whole else torch.zeros_like
        self.regions, self.gram = start(inputs.regions), start(inputs.gram)
        self.image_global = start(inputs.image_global)
        self.words = torch.zeros_like(inputs.words)
        self.text_global = torch.zeros_like(inputs.text_global)
        self.w_loc, self.w_glo = running_sum(w_loc), running_sum(w_glo)
        self.b_loc, self.b_glo = running_sum(w_loc[:, 0]), running_sum(w_glo[:, 0])


def _block_backward(
    block: GridInputs,
    raw: Tensor,
    grad: Tensor,
    unit: Tensor,
    norm: Tensor,
    w_loc: Tensor,
    w_glo: Tensor,
    smooth: float,
    sums: _Sums,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gradients of regions, Gram matrices, words (b, k, L, D), image globals (n, D) and text globals (b, k, D)."""
    seen = attend(raw, block.gram, block.region_mask, smooth)
    diff = differences(seen, block.regions, block.words)
    dz = l2_backward(grad[:, :, 1:], unit[:, :, 1:], norm[:, :, 1:]).view(-1, grad.shape[-1])
    buffer = diff * diff
    sums.w_loc += dz.T @ buffer.view(-1, buffer.shape[-1])
    sums.b_loc += dz.sum(0)
    torch.mm(dz.mul_(2), w_loc, out=buffer.view(-1, buffer.shape[-1]))
    d_diff = buffer.mul_(diff)
    d_regions, d_gram, d_words = attend_backward(seen, raw, d_diff, block.regions, block.words, smooth)
    d_words -= d_diff.sum(0, keepdim=True) if block.words.shape[0] == 1 else d_diff

    apart = block.image_global[:, None] - block.text_global
    dz = l2_backward(grad[:, :, 0], unit[:, :, 0], norm[:, :, 0]).view(-1, grad.shape[-1])
    sums.w_glo += dz.T @ apart.square().view(-1, apart.shape[-1])
    sums.b_glo += dz.sum(0)
    d_apart = (dz.mul_(2) @ w_glo).view(apart.shape).mul_(apart)
    d_text = d_apart.sum(0, keepdim=True) if block.words.shape[0] == 1 else d_apart
    return d_regions, d_gram, d_words.view(block.words.shape), d_apart.sum(1), -d_text


class SimilarityVectors(torch.autograd.Function):
    """`vectors` of a grid or a list of pairs with its backward; gradients to both sides and both maps."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        regions, gram, words, image_global, text_global, region_mask, w_loc, b_loc, w_glo, b_glo, smooth = args
        inputs = GridInputs(regions, gram, words, image_global, text_global, region_mask)
        with torch.autocast(regions.device.type, enabled=False):
            out, norms, raws = vectors(inputs, (w_loc, b_loc, w_glo, b_glo), smooth)
        ctx.smooth, ctx.region_mask = smooth, region_mask
        ctx.save_for_backward(regions, gram, words, image_global, text_global, w_loc, w_glo, out, norms, *raws)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        regions, gram, words, image_global, text_global, w_loc, w_glo, unit, norms, *raws = ctx.saved_tensors
        inputs = GridInputs(regions, gram, words, image_global, text_global, ctx.region_mask)
        shared = words.shape[0] == 1
        cells = live_cells(grad.flatten(2).abs().amax(-1)) if shared else None
        sums = _Sums(inputs, w_loc, w_glo, whole=cells is None)
        if cells is not None:
            _packed(inputs, cells, grad, unit, norms, w_loc, w_glo, ctx.smooth, sums)
        else:
            for part, raw in zip(inputs.parts(block_rows(grad.device, regions.shape[-1])), raws, strict=True):
                block = (inputs.images(part), raw, grad[part], unit[part], norms[part])
                d_regions, d_gram, d_words, d_image, d_text = _block_backward(*block, w_loc, w_glo, ctx.smooth, sums)
                sums.regions[part], sums.gram[part], sums.image_global[part] = d_regions, d_gram, d_image
                own = slice(None) if shared else part
                sums.words[own] += d_words
                sums.text_global[own] += d_text
        maps = (s.to(w_loc.dtype) for s in (sums.w_loc, sums.b_loc, sums.w_glo, sums.b_glo))
        return sums.regions, sums.gram, sums.words, sums.image_global, sums.text_global, None, *maps, None


def running_sum(like: Tensor) -> Tensor:
    """Zeros to add up blocks in, never narrower than float32 whatever the blocks compute in."""
    return torch.zeros_like(like, dtype=torch.promote_types(like.dtype, torch.float32))


def pieces(index: Tensor, size: int) -> Sequence[Tensor]:
    """Consecutive pieces of an index; none of an empty one."""
    return torch.split(index, size) if len(index) else ()


def live_cells(weight: Tensor) -> tuple[Tensor, Tensor] | None:
    """Rows and columns of the non-zero cells of (n, k), or None when they are too many to be worth packing.

    None on an accelerator too: to count them the host would wait for the device.
    """
    if weight.device.type != "cpu":
        return None
    rows, cols = weight.nonzero(as_tuple=True)
    return (rows, cols) if len(rows) <= SPARSE * weight.numel() else None


def _packed(
    inputs: GridInputs, cells: tuple[Tensor, Tensor], grad: Tensor, unit: Tensor, norms: Tensor,
    w_loc: Tensor, w_glo: Tensor, smooth: float, sums: _Sums,
) -> None:  # fmt: skip
    """The backward of the listed cells alone."""
    rows_of_block = max(1, block_rows(grad.device, inputs.regions.shape[-1]) // inputs.words.shape[2])
    for rows, cols in zip(*(pieces(c, rows_of_block) for c in cells), strict=True):
        block = inputs.pairs(rows, cols)
        raw = dots(block.regions, block.words)
        own, own_unit, own_norms = (t[rows, cols, None] for t in (grad, unit, norms))
        d_regions, d_gram, d_words, d_image, d_text = _block_backward(
            block, raw, own, own_unit, own_norms, w_loc, w_glo, smooth, sums
        )
        sums.regions.index_add_(0, rows, d_regions)
        sums.gram.index_add_(0, rows, d_gram)
        sums.image_global.index_add_(0, rows, d_image)
        sums.words[0].index_add_(0, cols, d_words[:, 0])
        sums.text_global[0].index_add_(0, cols, d_text[:, 0])
