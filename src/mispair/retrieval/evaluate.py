"""Recall of models on a split: every image against every text, ranked both ways."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from mispair.data.pair_data import PairData
from mispair.device_to_host import to_host
from mispair.functional.recalls import retrieval_metrics
from mispair.progress import Progress
from mispair.protocols import RetrievalModel
from mispair.retrieval.scoring import BATCH, Precision, encode_images, encode_texts, read_batches
from mispair.retrieval.shortlist import Shortlisted, shortlist_scores


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
        batch_size: int = BATCH,
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
            rows, cols = np.arange(len(self.data.images)), np.arange(len(self.data.image_of_text))
            images.append(encode_images(model, read_batches(model, self.data.image_batch, rows, self.batch_size)))
            texts.append(encode_texts(model, read_batches(model, self.data.text_batch, cols, self.batch_size)))
        self.shortlisted = shortlist_scores(
            models, images, texts, shortlist=self.shortlist, progress=self.progress, precision=self.precision
        )
        return to_host(self.shortlisted.scores)
