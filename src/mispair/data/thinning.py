"""Leaving parts of items out: a picture without some of its regions, a text without some of its words.

What is left out is drawn for each item from its own number and a salt, so that it does not depend on the batch the item
stands in, on padding, or on how many processes share the batch.

Letters: N items, T parts of an item (regions, words).
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from mispair.types import PairBatch


def thin_batch(batch: PairBatch, ids: Tensor, regions: float, words: float, salt: int) -> PairBatch:
    """The batch with a share of every image's regions and of every text's words left out, at least one of each kept.

    ids (N,): the pairs whose features the batch holds. A side that is one vector per item stays as it is.
    """
    image_mask, texts, text_mask = batch.image_mask, batch.texts, batch.text_mask
    if regions and image_mask.shape[1] > 1:
        image_mask = kept_parts(image_mask, uniforms(ids, image_mask.shape[1], 2 * salt), regions)
    if words and text_mask.shape[1] > 1:
        kept = kept_parts(text_mask, uniforms(ids, text_mask.shape[1], 2 * salt + 1), words)
        texts, text_mask = keep_in_order(texts, kept)
    return PairBatch(batch.images, image_mask, texts, text_mask, batch.pair_ids)


def crop_batch(batch: PairBatch, ids: Tensor, shape: tuple[int, ...], least: float, salt: int) -> PairBatch:
    """The batch with a part of every picture, at least the share `least` of its area, at the size of the whole.

    Pictures are pixels of `shape` (3, height, width) laid flat. Those of another shape (patches) stay as they are.
    """
    if len(shape) != 3 or not batch.images.shape[1]:
        return batch
    drawn = uniforms(ids, 3, 4 * salt + 3).to(batch.images.dtype)
    side = (least + (1 - least) * drawn[:, 0]).sqrt()
    middle = (2 * drawn[:, 1:] - 1) * (1 - side)[:, None]
    frames = batch.images.new_zeros(len(ids), 2, 3)
    frames[:, 0, 0] = frames[:, 1, 1] = side
    frames[:, :, 2] = middle
    pixels = batch.images[:, 0].reshape(-1, *shape)
    places = affine_grid(frames, list(pixels.shape), align_corners=False)
    parts = grid_sample(pixels, places, padding_mode="border", align_corners=False)
    return replace(batch, images=parts.flatten(1)[:, None])


def halve_texts(batch: PairBatch, ids: Tensor, salt: int) -> tuple[PairBatch, PairBatch]:
    """The batch twice, with one half of every text's words and with the other; an empty half is the whole text."""
    mask = batch.text_mask
    first = mask & (uniforms(ids, mask.shape[1], salt) < 0.5)
    halves = []
    for half in (first, mask & ~first):
        texts, text_mask = keep_in_order(batch.texts, torch.where(half.any(1, keepdim=True), half, mask))
        halves.append(PairBatch(batch.images, batch.image_mask, texts, text_mask, batch.pair_ids))
    return halves[0], halves[1]


def kept_parts(mask: Tensor, drawn: Tensor, dropped: float) -> Tensor:
    """The real parts (N, T) whose draw reaches `dropped`; an item that would lose all its parts keeps them."""
    kept = mask & (drawn >= dropped)
    return torch.where(kept.any(1, keepdim=True), kept, mask)


def keep_in_order(values: Tensor, kept: Tensor) -> tuple[Tensor, Tensor]:
    """The kept parts first, in their order, as a reader of sequences needs them: (N, T, ...), (N, T) -> the same."""
    order = (~kept).to(torch.uint8).sort(dim=1, stable=True).indices
    places = order.reshape(*order.shape, *(1,) * (values.ndim - 2)).expand(values.shape)
    return values.gather(1, places), kept.gather(1, order)


def uniforms(ids: Tensor, parts: int, salt: int) -> Tensor:
    """A number in [0, 1) for every part of every item, (N,) -> (N, parts): SplitMix64 of item, part and salt."""
    part = torch.arange(parts, device=ids.device)
    x = (ids[:, None] * _PARTS_APART + part) * _GOLDEN + _signed(salt * _SALT & (1 << 64) - 1)
    for shift, factor in ((30, _MIX_1), (27, _MIX_2)):
        x = (x ^ _shifted(x, shift)) * factor
    x = x ^ _shifted(x, 31)
    return _shifted(x, 11).double() / 2**53


def _shifted(x: Tensor, bits: int) -> Tensor:
    """x >> bits of unsigned 64-bit numbers that torch holds as signed."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def _signed(constant: int) -> int:
    return constant - (1 << 64) if constant >= 1 << 63 else constant


_PARTS_APART = 1 << 20  # more parts than any item has
_GOLDEN, _SALT = _signed(0x9E3779B97F4A7C15), _signed(0xD1B54A32D192ED03)
_MIX_1, _MIX_2 = _signed(0xBF58476D1CE4E5B9), _signed(0x94D049BB133111EB)
