"""Recall of models on a split: every image against every text, ranked both ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mispair.data.pair_data import PairData
from mispair.device_to_host import to_host
from mispair.functional.recalls import retrieval_metrics
from mispair.progress import Progress
from mispair.protocols import RetrievalModel
from mispair.retrieval.scoring import Precision, encode_images, encode_texts
from mispair.retrieval.shortlist import Shortlisted, shortlist_scores

Read = Callable[[NDArray[np.int64]], tuple[Tensor, Tensor]]


class RecallEvaluator:
    """The metrics of one split, larger `rsum` is better; several models rank by the mean of their scores."""

    primary = "rsum"

    def __init__(
        self,
        data: PairData,
        folds: int | None = None,
        *,
        shortlist: int | None = None,
        precision: Precision = "fp32",
        progress: Progress | None = None,
        batch_size: int = 256,
    ) -> None:
        self.data, self.folds, self.batch_size = data, folds, batch_size
        self.precision, self.progress = precision, progress
        self.shortlist = shortlist
        self.shortlisted: Shortlisted | None = None  # how good the last two-stage search was

    def __call__(self, models: Sequence[RetrievalModel]) -> dict[str, float]:
        return self.metrics(self.scores(models))

    def metrics(self, scores: Tensor) -> dict[str, float]:
        """Recalls of a score matrix (images, texts) of this split."""
        return retrieval_metrics(scores, self.data.owners, self.folds)

    def scores(self, models: Sequence[RetrievalModel]) -> Tensor:
        """(images, texts) mean score of the models."""
        images, texts = [], []
        for model in models:
            images.append(encode_images(model, self._batches(model, self.data.image_batch, len(self.data.images))))
            texts.append(encode_texts(model, self._batches(model, self.data.text_batch, len(self.data.image_of_text))))
        self.shortlisted = shortlist_scores(
            models, images, texts, shortlist=self.shortlist, progress=self.progress, precision=self.precision
        )
        return to_host(self.shortlisted.scores)

    def _batches(self, model: Any, read: Read, count: int) -> Iterator[tuple[Tensor, Tensor]]:
        assert isinstance(model, nn.Module)
        device = next(model.parameters(), torch.empty(0)).device
        for start in range(0, count, self.batch_size):
            values, mask = read(np.arange(start, min(start + self.batch_size, count)))
            yield values.to(device), mask.to(device)
