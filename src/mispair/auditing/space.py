"""Space: what an audit asks of a model, scores and ranks of any cells; made of trained models or of bare vectors.

Letters: I images, M texts, d width of their vectors, C cells (image row, text row), k candidates of a shortlist.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mispair.auditing.similarity import Rows, best_partners, cell_scores, stand_in_rows
from mispair.data.pair_data import PairData
from mispair.evaluation_mode import evaluation_mode
from mispair.progress import Tell, silent
from mispair.protocols import RetrievalModel
from mispair.retrieval.scoring import BATCH, encode_images, encode_texts, read_batches, score_pairs

Scores = NDArray[np.float32]

_SHORTLIST = 20
_SAME = 1e-4  # scores closer than this to the product of the vectors are that product


@dataclass(frozen=True)
class Cells:
    """What is known about some cells, each (C,)."""

    score: Scores
    caption_rank: NDArray[np.int64]  # of the text among all texts for the image
    image_rank: NDArray[np.int64]  # of the image among all images for the text
    caption_rivals: NDArray[np.float64]  # soft maximum of the scores of other texts with the image, less the score
    image_rivals: NDArray[np.float64]  # the same of other images with the text

    @classmethod
    def empty(cls, count: int) -> Cells:
        """Arrays for `count` cells, not filled yet."""
        ranks = np.empty((2, count), np.int64)
        return cls(np.empty(count, np.float32), *ranks, *np.empty((2, count)))

    def put(self, where: Rows, cells: Cells) -> None:
        """Overwrite the cells at the places `where` by `cells`."""
        for column in fields(self):
            getattr(self, column.name)[where] = getattr(cells, column.name)

    def take(self, cells: slice) -> Cells:
        return Cells(*(getattr(self, column.name)[cells] for column in fields(self)))

    def evidence(self, images: int, texts: int) -> NDArray[np.float64]:
        """(C, 5), larger is more suspicious. Ranks as logarithms: first or tenth matters, 991st or 1000th does not."""
        ranks = np.log(self.caption_rank / texts), np.log(self.image_rank / images)
        return np.column_stack([-self.score, *ranks, self.caption_rivals, self.image_rivals])


@dataclass(frozen=True)
class Space:
    """Vectors of both sides, and the score of a cell, which is their product unless a finer model scores."""

    images: Tensor  # (I, d)
    texts: Tensor  # (M, d)
    fine: Callable[[Rows, Rows, str], Scores] | None = None
    shortlists: tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]] | None = None  # scores, indices; by image, by text

    def score(self, rows: Rows, cols: Rows, why: str = "scoring pairs") -> Scores:
        """(C,) of the listed cells."""
        return cell_scores(self.images, self.texts, rows, cols) if self.fine is None else self.fine(rows, cols, why)

    def measure(self, rows: Rows, cols: Rows, tell: Tell = silent) -> Cells:
        """Scores and ranks of the listed cells."""
        score = self.score(rows, cols)
        near = score if self.fine is None else cell_scores(self.images, self.texts, rows, cols)
        captions, caption_rivals = stand_in_rows(
            self.images, self.texts, rows, cols, near, lambda done, total: tell("ranking captions", done, total)
        )
        images, image_rivals = stand_in_rows(
            self.texts, self.images, cols, rows, near, lambda done, total: tell("ranking images", done, total)
        )
        if self.shortlists is not None:
            by_image, by_text = self.shortlists
            captions = _refined(captions, score, rows, cols, *by_image)
            images = _refined(images, score, cols, rows, *by_text)
        return Cells(score, captions, images, caption_rivals - near, image_rivals - near)


def _refined(
    rank: NDArray[np.int64], score: Scores, rows: Rows, cols: Rows, scores: Tensor, partners: Tensor
) -> NDArray[np.int64]:
    """Where a cell is on the shortlist of its row, its rank there by the finer score; elsewhere as it was."""
    mine = partners.numpy()[rows]
    listed = (mine == cols[:, None]).any(1)
    better = (scores.numpy()[rows] >= score[:, None] - 1e-6) & (mine != cols[:, None])
    return np.where(listed, 1 + better.sum(1), rank)


@torch.no_grad()
def space_of(
    models: Sequence[RetrievalModel],
    data: PairData,
    tell: Tell = silent,
    *,
    image_rows: Rows | None = None,
    text_rows: Rows | None = None,
) -> Space:
    """The space of trained models, whose mean score counts, on the images and texts of `data`, or on some of them."""
    images, texts, pooled_images, pooled_texts = [], [], [], []
    image_rows = np.arange(len(data.images)) if image_rows is None else image_rows
    text_rows = np.arange(len(data.image_of_text)) if text_rows is None else text_rows
    count = len(image_rows), len(text_rows)
    said = partial(tell, "encoding images"), partial(tell, "encoding texts")
    for model in models:
        images.append(encode_images(model, read_batches(model, data.image_batch, image_rows, progress=said[0])))
        texts.append(encode_texts(model, read_batches(model, data.text_batch, text_rows, progress=said[1])))
        with evaluation_mode(model):
            pooled_images.append(_pooled(model.pool_images, images[-1]))
            pooled_texts.append(_pooled(model.pool_texts, texts[-1]))
    scale = len(models) ** -0.5  # products of joined vectors are then the mean of the products
    a, b = torch.cat(pooled_images, 1) * scale, torch.cat(pooled_texts, 1) * scale

    def fine(rows: Rows, cols: Rows, why: str) -> Scores:
        device = images[0].values.device
        where = [torch.from_numpy(np.ascontiguousarray(x)).to(device) for x in (rows, cols)]
        scored = score_pairs(models, images, texts, *where, progress=lambda done, total: tell(why, done, total))
        cell_score: Scores = scored.cpu().numpy()
        return cell_score

    probe = np.random.default_rng(0).integers(0, count, (min(512, count[0] * count[1]), 2))
    difference = fine(probe[:, 0], probe[:, 1], "scoring pairs") - cell_scores(a, b, probe[:, 0], probe[:, 1])
    if np.abs(difference).max() < _SAME:
        return Space(a, b)
    shortlists = []
    for one, other, by_image in ((a, b, True), (b, a, False)):
        partners = best_partners(one, other, _SHORTLIST, lambda done, total: tell("shortlisting", done, total))[1]
        queries = np.repeat(np.arange(len(one)), partners.shape[1])
        cells = (queries, partners.numpy().ravel()) if by_image else (partners.numpy().ravel(), queries)
        scored = fine(cells[0], cells[1], "scoring the shortlists")
        shortlists.append((torch.from_numpy(scored).reshape(partners.shape), partners))
    return Space(a, b, fine, (shortlists[0], shortlists[1]))


def _pooled(pool: Callable[[Any], Tensor], items: Any) -> Tensor:
    return torch.cat([pool(items.take(slice(at, at + BATCH))) for at in range(0, len(items), BATCH)]).float().cpu()
