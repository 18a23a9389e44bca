"""Recall of models on a split: every image against every text, ranked both ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from mispair.data.pairs import PairData
from mispair.functional.ranks import retrieval_metrics
from mispair.protocols import RetrievalModel
from mispair.types import Encoded


class RecallEvaluator:
    """The metrics of one split, larger `rsum` is better; several models rank by the mean of their scores."""

    primary = "rsum"

    def __init__(self, data: PairData, folds: int | None = None, batch_size: int = 256) -> None:
        self.data, self.folds, self.batch_size = data, folds, batch_size

    def __call__(self, models: Sequence[RetrievalModel]) -> dict[str, float]:
        return self.metrics(self.scores(models))

    def metrics(self, scores: Tensor) -> dict[str, float]:
        """Recalls of a score matrix (images, texts) of this split."""
        return retrieval_metrics(scores, self.data.image_of_text, self.folds)

    def scores(self, models: Sequence[RetrievalModel]) -> Tensor:
        """(images, texts) mean score of the models."""
        total: Tensor | None = None
        for model in models:
            scores = self._scores(model)
            total = scores if total is None else total + scores
        assert total is not None, "no model to score with"
        return total / len(models)

    @torch.no_grad()
    def _scores(self, model: RetrievalModel) -> Tensor:
        assert isinstance(model, nn.Module)
        device = next(model.parameters()).device
        images = self._encode(self.data.image_batch, model.encode_images, len(self.data.images), device)
        texts = self._encode(self.data.text_batch, model.encode_texts, len(self.data.image_of_text), device)
        rows = []
        for image in images:
            rows.append(torch.cat([model.link(model.similarity(image, text)).float().cpu() for text in texts], 1))
        return torch.cat(rows)

    def _encode(
        self,
        read: Callable[[np.ndarray], tuple[Tensor, Tensor]],
        encode: Callable[[Tensor, Tensor], Encoded],
        count: int,
        device: torch.device,
    ) -> list[Encoded]:
        blocks = []
        for start in range(0, count, self.batch_size):
            values, mask = read(np.arange(start, min(start + self.batch_size, count)))
            blocks.append(encode(values.to(device), mask.to(device)))
        return blocks
