"""Retrieval metrics from a score matrix: recalls, median and mean rank, their sum.

Letters: n images (rows), m captions (columns), scores (n, m); owner (m,) is the image each caption belongs to.

The tie rule: ties count against the model. The rank of a query is the number of wrong candidates that score at
least as high as its best right one, so a constant matrix scores 0 instead of what its order happens to give.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mispair.errors import InputError

_CHUNK = 1 << 19  # cells compared at a time: what stays in the processor's cache


def retrieval_metrics(
    scores: Tensor | np.ndarray[Any, Any],
    captions_per_image: int | Sequence[int] | Tensor | np.ndarray[Any, Any],
    folds: int | None = None,
) -> dict[str, float]:
    """Recall@1/5/10 in percent, median and mean rank (from 1), both directions, and their sum `rsum` (of 600).

    Args:
        scores: (n, m), larger is more similar.
        captions_per_image: c when image i owns captions ci .. ci+c-1, or the owner of each caption, (m,).
        folds: split the images into this many consecutive, equal galleries and average (COCO 1K is folds=5).

    Returns:
        i2t_r1, i2t_r5, i2t_r10, i2t_medr, i2t_meanr, the same with t2i, rsum, and collapsed: 1.0 when the scores do
        not tell candidates apart (then the recalls mean nothing), else 0.0. Images that own no caption are
        candidates, not queries.

    Example:
        >>> retrieval_metrics(images @ captions.T, captions_per_image=5)["rsum"]
    """
    matrix = scores if isinstance(scores, Tensor) else torch.from_numpy(np.asarray(scores))
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InputError(f"scores must be (images, captions), got shape {tuple(matrix.shape)}")
    owner = _owners(captions_per_image, *matrix.shape).to(matrix.device)
    if folds is None:
        return _metrics(matrix, owner)
    n = matrix.shape[0]
    if folds < 1 or n % folds:
        raise InputError(f"folds must divide the {n} images into equal galleries, got {folds}")
    size = n // folds
    results = []
    for start in range(0, n, size):
        mine = ((owner >= start) & (owner < start + size)).nonzero().squeeze(1)
        if len(mine) == 0:
            raise InputError(f"images {start} to {start + size - 1} own no caption, so that fold cannot be ranked")
        results.append(_metrics(matrix[start : start + size, mine], owner[mine] - start))
    return {key: sum(r[key] for r in results) / folds for key in results[0]}


def ranks(scores: Tensor, owner: Tensor) -> tuple[Tensor, Tensor]:
    """Rank from 0 of every query under the tie rule: (n, m), (m,) -> i2t (queries,), t2i (m,)."""
    n, m = scores.shape
    column = torch.arange(m, device=scores.device)
    given = scores[owner, column]  # (m,) score of each caption with its own image
    best = scores.new_full((n,), -math.inf).scatter_reduce(0, owner, given, "amax")  # best own caption of each image
    owned = torch.zeros(n, dtype=torch.bool, device=scores.device).index_fill(0, owner, True)
    as_good_own = torch.zeros(n, dtype=torch.int64, device=scores.device)
    as_good_own.index_add_(0, owner, (given >= best[owner]).long())
    i2t = torch.empty(n, dtype=torch.int64, device=scores.device)
    t2i = torch.full((m,), -1, dtype=torch.int64, device=scores.device)  # its own image is as good as itself
    step = max(1, _CHUNK // m)
    buffer = torch.empty(min(step, n), m, device=scores.device)  # counting floats is ten times faster than bools
    for start in range(0, n, step):
        block = scores[start : start + step]
        as_good = buffer[: len(block)]
        i2t[start : start + step] = torch.ge(block, best[start : start + step, None], out=as_good).sum(1).long()
        t2i += torch.ge(block, given, out=as_good).sum(0).long()
    return (i2t - as_good_own)[owned], t2i


def _metrics(scores: Tensor, owner: Tensor) -> dict[str, float]:
    low, high = torch.aminmax(scores)
    if not bool(torch.isfinite(low) & torch.isfinite(high)):
        raise InputError(
            "scores must be finite, got NaN or infinity: the model diverged, or its input held such values"
        )
    i2t, t2i = ranks(scores, owner)
    metrics: dict[str, float] = {}
    for direction, rank in (("i2t", i2t), ("t2i", t2i)):
        for k in (1, 5, 10):
            metrics[f"{direction}_r{k}"] = 100 * (rank < k).double().mean().item()
        middle = torch.quantile(rank.double(), 0.5).item() if len(rank) < 1 << 24 else rank.median().item()
        metrics[f"{direction}_medr"] = float(math.floor(middle) + 1)
        metrics[f"{direction}_meanr"] = rank.double().mean().item() + 1
    metrics["rsum"] = sum(metrics[f"{d}_r{k}"] for d in ("i2t", "t2i") for k in (1, 5, 10))
    metrics["collapsed"] = float(_collapsed(scores, float(low), float(high)))
    return metrics


def _collapsed(scores: Tensor, low: float, high: float) -> bool:
    """Whether all scores are one number, up to rounding."""
    return scores.numel() > 1 and high - low <= 1e-6 * max(abs(high), abs(low), 1e-30)


def _owners(given: int | Sequence[int] | Tensor | np.ndarray[Any, Any], n: int, m: int) -> Tensor:
    if isinstance(given, int):
        if given < 1 or n * given != m:
            raise InputError(
                f"captions_per_image={given} needs {n} x {given} = {n * given} captions for {n} images, got {m}; "
                "pass the owner of each caption if images own different numbers"
            )
        return torch.arange(m) // given
    owner = torch.as_tensor(np.asarray(given) if not isinstance(given, Tensor) else given)
    if owner.shape != (m,) or owner.is_floating_point():
        raise InputError(f"the owner of each caption must be {m} integers, got {owner.dtype} {tuple(owner.shape)}")
    if bool(((owner < 0) | (owner >= n)).any()):
        wrong = int(((owner < 0) | (owner >= n)).nonzero()[0])
        raise InputError(f"caption {wrong} names image {int(owner[wrong])} as its owner; the images are 0 to {n - 1}")
    return owner.long()
