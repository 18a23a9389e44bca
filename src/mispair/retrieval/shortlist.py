"""Two-stage scoring: a cheap stand-in picks candidates for every query, the full model scores only those."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mispair.errors import InputError
from mispair.evaluation_mode import evaluation_mode
from mispair.progress import Progress
from mispair.protocols import RetrievalModel
from mispair.retrieval.scoring import BUDGET, Precision, score_grid, score_pairs
from mispair.types import Encoded


@dataclass(frozen=True, slots=True)
class Shortlisted:
    """Scores of a two-stage search and how good its first stage was.

    `recall_*`: of the `depth` best answers by exhaustive scoring, the share the shortlist holds, over the queries
    that were checked; None when nothing was checked, 1 when the search was exhaustive.
    """

    scores: Tensor  # (n, m); cells the full model did not score lie below all it did, in the order of stage one
    share: float  # of the cells, scored by the full model
    recall_i2t: float | None
    recall_t2i: float | None
    depth: int


@torch.no_grad()
def shortlist_scores(
    models: Sequence[RetrievalModel],
    images: Sequence[Encoded],
    texts: Sequence[Encoded],
    *,
    shortlist: int | None,
    check: int = 10,
    depth: int = 10,
    budget_bytes: int = BUDGET,
    progress: Progress | None = None,
    precision: Precision = "fp32",
) -> Shortlisted:
    """Score the `shortlist` best texts of every image and images of every text; None scores every cell.

    `check` images and as many texts, evenly spaced, are also scored exhaustively to report the first stage's recall.
    """
    if shortlist is None:
        grid = score_grid(models, images, texts, budget_bytes=budget_bytes, progress=progress, precision=precision)
        return Shortlisted(grid, 1.0, 1.0, 1.0, depth)
    if shortlist < 1:
        raise InputError(f"a shortlist needs at least 1 candidate per query, got {shortlist}")
    cheap = stand_in(models, images, texts)
    chosen = candidates(cheap, shortlist)
    rows, cols = chosen.nonzero(as_tuple=True)
    full = score_pairs(
        models, images, texts, rows, cols, budget_bytes=budget_bytes, progress=progress, precision=precision
    )
    scores = full.min() - 2 + cheap  # the stand-in is a cosine: everything left out lies at least 1 below
    scores[rows, cols] = full
    i2t = t2i = None
    if check > 0:
        queries = _spaced(len(images[0]), check), _spaced(len(texts[0]), check)
        some_images, some_texts = [i.take(queries[0]) for i in images], [t.take(queries[1]) for t in texts]
        i2t = _held(score_grid(models, some_images, texts, precision=precision), chosen[queries[0]], depth)
        t2i = _held(score_grid(models, images, some_texts, precision=precision).T, chosen[:, queries[1]].T, depth)
    return Shortlisted(scores, len(rows) / chosen.numel(), i2t, t2i, depth)


def stand_in(models: Sequence[RetrievalModel], images: Sequence[Encoded], texts: Sequence[Encoded]) -> Tensor:
    """Mean inner product of the pooled vectors, (n, m): the first stage."""
    total: Tensor | None = None
    for model, own_images, own_texts in zip(models, images, texts, strict=True):
        with evaluation_mode(model):
            pooled = [
                torch.cat([pool(items.take(slice(at, at + 256))) for at in range(0, len(items), 256)])
                for pool, items in ((model.pool_images, own_images), (model.pool_texts, own_texts))
            ]
        part = pooled[0].float() @ pooled[1].float().T
        total = part if total is None else total + part
    assert total is not None
    return total / len(models)


def candidates(cheap: Tensor, count: int) -> Tensor:
    """The cells (n, m) among the `count` best of their row or of their column."""
    n, m = cheap.shape
    chosen = torch.zeros_like(cheap, dtype=torch.bool)
    chosen.scatter_(1, cheap.topk(min(count, m), 1).indices, True)
    chosen.scatter_(0, cheap.topk(min(count, n), 0).indices, True)
    return chosen


def _spaced(count: int, wanted: int) -> Tensor:
    return torch.linspace(0, count - 1, min(count, wanted)).round().long()


def _held(exhaustive: Tensor, chosen: Tensor, depth: int) -> float:
    """Share of each query's best `depth` answers that its shortlist holds; queries are rows."""
    best = exhaustive.topk(min(depth, exhaustive.shape[1]), 1).indices
    return float(chosen.gather(1, best).float().mean())
