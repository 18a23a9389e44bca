"""How good are mismatch probabilities, when the truth is known?

Letters: N pairs; p (N,) probability of being mismatched; truth (N,) bool, True where the pair is mismatched.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mispair.errors import InputError

CERTAIN = 0.99


def detection_metrics(p_mismatch: ArrayLike, truth: ArrayLike, threshold: float = 0.5) -> dict[str, float]:
    """precision, recall, f1 (at p > threshold), auroc, average_precision, ece, certain: (N,), (N,) -> dict.

    `certain` is the share of the pairs with p of at least 0.99 that are mismatched.

    A figure that does not exist (an AUROC when all pairs are of one kind) is NaN.
    """
    p, wrong = _checked(p_mismatch, truth)
    flagged, certain = p > threshold, p >= CERTAIN
    hits = int((flagged & wrong).sum())
    precision = hits / flagged.sum() if flagged.any() else 0.0
    recall = hits / wrong.sum() if wrong.any() else math.nan
    f1 = 2 * hits / (flagged.sum() + wrong.sum()) if (flagged | wrong).any() else math.nan
    return {
        "precision": float(precision),
        "recall": float(recall),
        "f1": float(f1),
        "auroc": auroc(p, wrong),
        "average_precision": average_precision(p, wrong),
        "ece": calibration_error(p, wrong),
        "certain": float(wrong[certain].mean()) if certain.any() else math.nan,
    }


def auroc(score: ArrayLike, truth: ArrayLike) -> float:
    """Probability that a mismatched pair scores above a matched one, ties half; NaN if one kind is missing."""
    s, wrong = _checked(score, truth, probabilities=False)
    positives = int(wrong.sum())
    negatives = len(wrong) - positives
    if positives == 0 or negatives == 0:
        return math.nan
    _, inverse, counts = np.unique(s, return_inverse=True, return_counts=True)
    last = counts.cumsum()
    mean_rank = last - (counts - 1) / 2  # from 1, ties share the middle
    return float((mean_rank[inverse][wrong].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def average_precision(score: ArrayLike, truth: ArrayLike) -> float:
    """Precision averaged over the recall steps of descending thresholds; NaN if nothing is mismatched."""
    s, wrong = _checked(score, truth, probabilities=False)
    if not wrong.any():
        return math.nan
    order = np.argsort(-s, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(s[order]) != 0, True))  # equal scores are one threshold
    hits = wrong[order].cumsum()[ends]
    return float((np.diff(hits, prepend=0) / wrong.sum() * (hits / (ends + 1))).sum())


def calibration_error(p_mismatch: ArrayLike, truth: ArrayLike, bins: int = 15) -> float:
    """Expected calibration error over equal-width bins: mean |share mismatched - mean p|, weighted by pairs."""
    p, wrong = _checked(p_mismatch, truth)
    if bins < 1:
        raise InputError(f"bins must be at least 1, got {bins}")
    index = np.minimum((p * bins).astype(np.int64), bins - 1)
    gap = np.bincount(index, weights=wrong - p, minlength=bins)
    return float(np.abs(gap).sum() / len(p))


def _checked(
    score: ArrayLike, truth: ArrayLike, probabilities: bool = True
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    s = np.asarray(score, dtype=np.float64)
    wrong = np.asarray(truth)
    if s.ndim != 1 or s.shape != wrong.shape or len(s) == 0:
        raise InputError(f"scores and truth must be one value per pair, got shapes {s.shape} and {wrong.shape}")
    if not np.isfinite(s).all():
        raise InputError(
            f"scores must be finite, got NaN or infinity at pair {int(np.flatnonzero(~np.isfinite(s))[0])}"
        )
    if probabilities and (s.min() < 0 or s.max() > 1):
        raise InputError(f"probabilities must be in [0, 1], got values from {s.min():g} to {s.max():g}")
    return s, wrong.astype(bool)


def best_f1_threshold(p: NDArray[np.float64]) -> float:
    """The probability from which on calling pairs mismatched gives the best F1 that can be expected; p (N,).

    Of the k most probable pairs sum(p) are expected to be mismatched, of all pairs the sum over all.
    """
    falling = np.sort(p)[::-1]
    hits = np.cumsum(falling)
    f1 = 2 * hits / np.maximum(np.arange(1, len(p) + 1) + hits[-1], 1e-12)
    return float(falling[f1.argmax()])
