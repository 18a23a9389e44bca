"""Encode once, then score a grid or a list of pairs with one or several models, within a memory budget.

Several models rank by the mean of their scores (`link` of their logits): that is what SGRAF is, one SGR and one SAF.
Every model brings its own encoded images and texts. Texts are taken in order of length, so a chunk carries little
padding; a model's own blocks then carry none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mispair.errors import InputError
from mispair.evaluation_mode import evaluation_mode
from mispair.half_precision import bfloat16
from mispair.progress import Progress
from mispair.protocols import RetrievalModel
from mispair.types import Encoded

Precision = Literal["fp32", "bf16"]
Read = Callable[[NDArray[np.int64]], tuple[Tensor, Tensor]]  # rows (b,) -> values and mask of those items
BUDGET = 1 << 30
BATCH = 256  # items encoded at a time


def device_of(model: RetrievalModel) -> torch.device:
    """Where the parameters of a network lie; the processor where it has none."""
    assert isinstance(model, nn.Module)
    device: torch.device = next(model.parameters(), torch.empty(0)).device
    return device


def read_batches(
    model: RetrievalModel, read: Read, rows: NDArray[np.int64], size: int = BATCH, progress: Progress | None = None
) -> Iterator[tuple[Tensor, Tensor]]:
    """The items `rows` as `encode_images` and `encode_texts` take them: batches on the device of the model."""
    device = device_of(model)
    for start in range(0, len(rows), size):
        values, mask = read(rows[start : start + size])
        yield values.to(device), mask.to(device)
        if progress is not None:
            progress(min(start + size, len(rows)), len(rows))


@torch.no_grad()
def encode_images(model: RetrievalModel, batches: Iterable[tuple[Tensor, Tensor]]) -> Encoded:
    """All images of `batches` of (features (b, R, F), mask (b, R)), encoded in evaluation mode."""
    with evaluation_mode(model):
        return join([model.encode_images(*batch) for batch in batches])


@torch.no_grad()
def encode_texts(model: RetrievalModel, batches: Iterable[tuple[Tensor, Tensor]]) -> Encoded:
    """All texts of `batches` of (ids (b, L) or features (b, L, F'), mask (b, L)), encoded in evaluation mode."""
    with evaluation_mode(model):
        return join([model.encode_texts(*batch) for batch in batches])


def join(parts: Sequence[Encoded]) -> Encoded:
    """Batches under each other, padded to the widest."""
    if not parts:
        raise InputError("there is nothing to encode: no batch was given")
    widest = max(part.mask.shape[1] for part in parts)
    values = [nn.functional.pad(part.values, (0, 0, 0, widest - part.mask.shape[1])) for part in parts]
    masks = [nn.functional.pad(part.mask, (0, widest - part.mask.shape[1])) for part in parts]
    return Encoded(torch.cat(values), torch.cat(masks))


@torch.no_grad()
def score_grid(
    models: Sequence[RetrievalModel],
    images: Sequence[Encoded],
    texts: Sequence[Encoded],
    *,
    budget_bytes: int = BUDGET,
    progress: Progress | None = None,
    precision: Precision = "fp32",
) -> Tensor:
    """Mean score of every image against every text, (n, m) float32.

    `budget_bytes` bounds the memory used on top of the encoded items and the result.
    """
    n, m = _check(models, images, texts)
    total = images[0].values.new_zeros(n, m, dtype=torch.float32)
    done = 0
    for model, own_images, own_texts in zip(models, images, texts, strict=True):
        with evaluation_mode(model), _precision(own_images, precision):
            for rows, cols in tiles(own_images, own_texts, budget_bytes):
                part = model.similarity(own_images.take(rows), cut(own_texts, cols))
                total[rows, cols] += model.link(part.float())
                done += len(part) * len(cols)
                if progress is not None:
                    progress(done, len(models) * n * m)
    return total / len(models)


@torch.no_grad()
def score_pairs(
    models: Sequence[RetrievalModel],
    images: Sequence[Encoded],
    texts: Sequence[Encoded],
    rows: Tensor,
    cols: Tensor,
    *,
    budget_bytes: int = BUDGET,
    progress: Progress | None = None,
    precision: Precision = "fp32",
) -> Tensor:
    """Mean score of image rows[k] with text cols[k], (k,) float32, in the order of the list."""
    n, m = _check(models, images, texts)
    if rows.shape != cols.shape or rows.ndim != 1:
        raise InputError(f"rows and cols must list as many cells, got {tuple(rows.shape)} and {tuple(cols.shape)}")
    if len(rows) and not (0 <= int(rows.min()) <= int(rows.max()) < n and 0 <= int(cols.min()) <= int(cols.max()) < m):
        raise InputError(f"cells must lie in a grid of {n} images and {m} texts, got rows and cols outside it")
    total = images[0].values.new_zeros(len(rows), dtype=torch.float32)
    done = 0
    for model, own_images, own_texts in zip(models, images, texts, strict=True):
        with evaluation_mode(model), _precision(own_images, precision):
            place = torch.empty(m, dtype=torch.long, device=cols.device)
            for stripe, batch in tiles(own_images, own_texts, budget_bytes):
                inside = torch.zeros(m, dtype=torch.bool, device=cols.device)
                inside[batch] = True
                place[batch] = torch.arange(len(batch), device=cols.device)
                mine = (inside[cols] & (rows >= stripe.start) & (rows < stripe.stop)).nonzero()[:, 0]
                where = (rows[mine] - stripe.start, place[cols[mine]])
                part = model.paired(own_images.take(stripe), cut(own_texts, batch), *where)
                total[mine] += model.link(part.float())
                done += len(mine)
                if progress is not None:
                    progress(done, len(models) * len(rows))
    return total / len(models)


def joined_vectors(vectors: Sequence[Tensor]) -> NDArray[np.float32]:
    """Unit vectors (n, D) of the same items by several networks as one each: products are the mean of theirs."""
    joined: NDArray[np.float32] = torch.cat([part.float().cpu() for part in vectors], 1).numpy() / len(vectors) ** 0.5
    return joined


def ensemble(scores: Iterable[Tensor]) -> Tensor:
    """The mean of score matrices of separately trained models: SGRAF is that of one SGR and one SAF."""
    parts = list(scores)
    if len({tuple(part.shape) for part in parts}) != 1:
        raise InputError(f"an ensemble needs score matrices of one shape, got {[tuple(p.shape) for p in parts]}")
    return torch.stack(parts).mean(0)


def tiles(images: Encoded, texts: Encoded, budget_bytes: int) -> Iterator[tuple[slice, Tensor]]:
    """Stripes of images and batches of texts (by length) whose working copies fit the budget.

    A model holds a few copies of what it is given (sorted words, normalised regions, their attention), hence a
    sixteenth of the budget for each side; its blocks are of fixed size.
    """
    share = max(1, budget_bytes // 16)
    n, m = len(images), len(texts)
    height = max(1, min(n, share // max(1, images.values[:1].nbytes)))
    lengths = texts.mask.sum(1)
    order = torch.argsort(lengths, stable=True)
    width = max(1, min(m, share // max(1, texts.values[:1].nbytes)))
    for start in range(0, n, height):
        for batch in torch.split(order, width):
            yield slice(start, min(start + height, n)), batch


def cut(texts: Encoded, index: Tensor) -> Encoded:
    """The texts at `index` without the columns that are padding for all of them; an accelerator keeps the padding."""
    mask = texts.mask[index]
    if mask.device.type != "cpu":  # a look would wait for it
        return texts.take(index)
    length = int(mask.sum(1).max())
    return Encoded(texts.values[index, :length], mask[:, :length])


def _precision(images: Encoded, precision: Precision) -> AbstractContextManager[object]:
    if precision == "fp32":
        return nullcontext()
    if precision == "bf16":
        return bfloat16(images.values.device.type)
    raise InputError(f"there is no precision {precision!r}; it is fp32 or bf16")


def _check(models: Sequence[RetrievalModel], images: Sequence[Encoded], texts: Sequence[Encoded]) -> tuple[int, int]:
    if not models or not len(models) == len(images) == len(texts):
        raise InputError(
            f"each model needs its own encoded images and texts, got {len(models)} models, "
            f"{len(images)} images, {len(texts)} texts"
        )
    sizes = {(len(i), len(t)) for i, t in zip(images, texts, strict=True)}
    if len(sizes) != 1:
        raise InputError(f"all models must have encoded the same items, got sizes {sorted(sizes)}")
    return sizes.pop()
