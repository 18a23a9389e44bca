"""Soft labels: how likely does a given pair match, judged by the batch around it?

Letters: n pairs, k anchors, D width. All labels are (n,) in [0, 1].
"""

from __future__ import annotations

import torch
from torch import Tensor

from mispair.errors import InputError
from mispair.functional.ranking_losses import triplet


def correspondence(scores: Tensor, margin: float = 0.2) -> Tensor:
    """How well each given pair holds against its batch: scores (n, n) -> (n,) (NCR, correspondence prediction).

    t_i = [α - ½ mean hinge of pair i] within [0, α], divided by the mean of the best tenth of the batch, within [0, 1].
    A batch in which nobody holds gives zeros.
    """
    held = _held_margin(scores, margin)
    best = held.topk(anchor_count(len(held))).values.mean()
    return torch.where(best > 0, held / best.clamp(min=torch.finfo(held.dtype).tiny), 0.0).clamp(0, 1)


def anchor_count(n: int) -> int:
    """How many pairs of a batch of n serve as reference: a tenth and one, as NCR and BiCro take them."""
    return n // 10 + 1


def anchors(scores: Tensor, margin: float = 0.2) -> Tensor:
    """The pairs that hold best against their batch: scores (n, n) -> indices (k,) (BiCro, anchor selection)."""
    held = _held_margin(scores, margin)
    return held.topk(anchor_count(len(held))).indices


def _held_margin(scores: Tensor, margin: float) -> Tensor:
    return (margin - 0.5 * triplet(scores, margin, "mean")).clamp(0, margin)


def refine_label(p_matched: Tensor, prediction: Tensor) -> Tensor:
    """Trust the given label as far as the split does, the prediction for the rest: (n,), (n,) -> (n,) (NCR)."""
    if p_matched.ndim != 1 or p_matched.shape != prediction.shape:  # (n, 1) with (n,) would give (n, n)
        raise InputError(
            f"p_matched and prediction must both be (n,), got {tuple(p_matched.shape)} and {tuple(prediction.shape)}"
        )
    return p_matched + (1 - p_matched) * prediction


def similarity_ratio(images: Tensor, texts: Tensor, anchor_images: Tensor, anchor_texts: Tensor) -> Tensor:
    """Agreement of a pair's two sides about its nearest anchor: (n, D), (n, D), (k, D), (k, D) -> (n,) (BiCro).

    For the anchor nearest in images, the ratio of the two sides' cosines to it; likewise for the anchor nearest in
    texts; their mean. A ratio is smaller over larger, and 0 unless both cosines are positive.
    """
    if images.shape[0] != texts.shape[0] or anchor_images.shape[0] != anchor_texts.shape[0]:
        raise InputError(
            f"images and texts must pair up, and so must the anchors, got {images.shape[0]} and {texts.shape[0]}, "
            f"{anchor_images.shape[0]} and {anchor_texts.shape[0]}"
        )
    by_image = _cosines(images, anchor_images)  # (n, k)
    by_text = _cosines(texts, anchor_texts)
    nearest_image = by_image.argmax(1, keepdim=True)
    nearest_text = by_text.argmax(1, keepdim=True)
    first = _ratio(by_image.gather(1, nearest_image), by_text.gather(1, nearest_image))
    second = _ratio(by_image.gather(1, nearest_text), by_text.gather(1, nearest_text))
    return (0.5 * (first + second)).squeeze(1)


def _cosines(items: Tensor, anchors: Tensor) -> Tensor:
    return torch.nn.functional.normalize(items, dim=1) @ torch.nn.functional.normalize(anchors, dim=1).T


def _ratio(u: Tensor, v: Tensor) -> Tensor:
    both = (u > 0) & (v > 0)
    larger = torch.where(both, torch.maximum(u, v), 1.0)
    return torch.where(both, torch.minimum(u, v) / larger, 0.0)


def structures(images: Tensor, texts: Tensor, trust: Tensor) -> tuple[Tensor, Tensor]:
    """How every item stands to the batch within its own side: (n, D), (n, D), (n,) -> (n, n), (n, n) (GSC).

    Row i holds the cosines of item i to all others of its side, each weighted by how far that other pair is trusted;
    its own entry, which is 1 on either side whatever the pair, is left out.
    """
    n = images.shape[0]
    if texts.shape[0] != n or trust.shape != (n,):
        raise InputError(
            f"images, texts and trust must be of the same pairs, got {n}, {texts.shape[0]} and {tuple(trust.shape)}"
        )
    others = trust.expand(n, n).masked_fill(torch.eye(n, dtype=torch.bool, device=trust.device), 0)
    return _cosines(images, images) * others, _cosines(texts, texts) * others


def pseudo_classification(images: Tensor, texts: Tensor) -> Tensor:
    """An image is to be put where its text is put: logits (n, c), (n, c) of one classifier -> (n,) (PC2).

    The cross entropy of the image's prediction with the likeliest class of the text, which is taken as given.
    """
    if images.ndim != 2 or images.shape != texts.shape:
        raise InputError(f"logits must be (n, classes) on both sides, got {tuple(images.shape)}, {tuple(texts.shape)}")
    return -images.log_softmax(1).gather(1, texts.argmax(1, keepdim=True))[:, 0]


def classes_in_use(logits: Tensor, weights: Tensor | None = None) -> Tensor:
    """The entropy of the mean prediction of a batch, logits (n, c) -> (): log c where all classes are used alike (PC2).

    Weights (n,) say how much each prediction counts, in the mean and, by their own mean, in the result.
    """
    shares = logits.softmax(1)
    if weights is not None:
        total = weights.sum()
        mean = (weights[:, None] * shares).sum(0) / total.clamp(min=torch.finfo(shares.dtype).tiny)
        return -(mean * mean.clamp(min=1e-12).log()).sum() * total / len(weights)
    mean = shares.mean(0)
    return -(mean * mean.clamp(min=1e-12).log()).sum()
