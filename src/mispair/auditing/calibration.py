"""What tells given pairs from re-paired ones, and what that says of every pair.

Nobody knows which given pairs are wrong, but anybody can make wrong ones: an image with the caption of another row.
Given pairs are a mixture of matched ones and of such, so what tells given from re-paired pairs tells matched from
mismatched ones (Elkan and Noto 2008). How many and how probable: `mispair.functional.mismatch_rate`.

Letters: N given pairs, Z re-paired ones, F kinds of evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mispair.data.source import FEWEST
from mispair.errors import InputError
from mispair.functional.mismatch_rate import MismatchEstimate, estimate_mismatch, normal_scores
from mispair.functional.tell_apart import fit_weights

Floats = NDArray[np.float64]

CONVINCING = 0.95  # of the matched pairs look at least as matched as what is proposed
TILT = 1e-3  # how far p is tilted by the order, so that pairs equally probable still have one


def refuse_few(pairs: int) -> None:
    """Raise InputError where there are too few pairs to compare with each other."""
    if pairs < FEWEST:
        raise InputError(f"an audit compares pairs with each other and needs at least {FEWEST}, got {pairs}")


def refuse_few_comparable(comparable: NDArray[np.bool_]) -> None:
    """Raise InputError where too few pairs (N,) are left beside those whose captions say nothing of their image."""
    if comparable.sum() < FEWEST:
        raise InputError(
            "nearly all pairs show a caption that stands with many unlike images: there is nothing to compare with,"
            " so look at the table"
        )


@dataclass(frozen=True, slots=True)
class Calibration:
    """Probabilities of the given pairs, and how to judge any other."""

    p_mismatch: Floats  # (N,)
    estimate: MismatchEstimate
    weights: Floats  # (F,)
    suspicion: Floats  # (N,) larger: more like a re-paired pair
    repaired: Floats  # (Z,) the same of the re-paired pairs

    def convinces(self, evidence: Floats) -> NDArray[np.bool_]:
        """Whether pairs with this evidence, (C, F), look as matched as nearly all matched pairs do: (C,).

        Stricter than p < 1/2: a candidate is the best of many, so that chance alone makes it look better than most.
        """
        matched = self.suspicion[self.p_mismatch < 0.5]
        level = np.quantile(matched, CONVINCING) if len(matched) else -np.inf
        return np.asarray(evidence @ self.weights <= level)

    def histogram(self, bins: int = 60) -> dict[str, list[float]]:
        """Counts of given pairs by suspicion, and how many of them are matched and mismatched."""
        low, high = np.quantile(np.concatenate([self.suspicion, self.repaired]), (0.001, 0.999))
        edges = np.linspace(low, max(high, low + 1e-9), bins + 1)
        counts = np.histogram(self.suspicion.clip(edges[0], edges[-1]), edges)[0]
        wrong = np.histogram(self.repaired.clip(edges[0], edges[-1]), edges)[0]
        wrong_among_given = self.estimate.rate * len(self.suspicion) * wrong / max(len(self.repaired), 1)
        return histogram_values(edges, counts, wrong_among_given)


def histogram_values(edges: Floats, counts: NDArray[Any], mismatched: Floats) -> dict[str, list[float]]:
    """A histogram as `audit.json` keeps it, (bins,): given pairs, and how many of them are expected to be wrong."""
    mismatched = np.minimum(mismatched, counts)
    return {
        "edges": edges.tolist(),
        "counts": counts.tolist(),
        "matched": (counts - mismatched).tolist(),
        "mismatched": mismatched.tolist(),
    }


def calibrate(given: Floats, repaired: Floats, groups: NDArray[np.int64]) -> Calibration:
    """given (N, F), repaired (Z, F): evidence, larger is more suspicious; groups (N,): the image of each pair."""
    weights = fit_weights(given, repaired)
    suspicion, wrong = given @ weights, repaired @ weights
    scores = normal_scores(suspicion, wrong)
    estimate = estimate_mismatch(scores, groups)
    place = np.empty(len(scores))
    place[np.argsort(suspicion, kind="stable")] = (np.arange(len(scores)) + 0.5) / len(scores)
    p = (1 - TILT) * estimate.p_mismatch(scores) + TILT * place * estimate.rate
    return Calibration(p, estimate, weights, suspicion, wrong)


def never_falling(values: Floats, weights: NDArray[np.int64] | Floats) -> Floats:
    """The closest sequence that never falls (pool adjacent violators)."""
    blocks: list[tuple[float, float, int]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        blocks.append((value, weight, 1))
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            (v1, w1, n1), (v2, w2, n2) = blocks[-2], blocks.pop()
            blocks[-1] = ((v1 * w1 + v2 * w2) / (w1 + w2), w1 + w2, n1 + n2)
    return np.repeat(np.array([value for value, _, _ in blocks]), [count for _, _, count in blocks])
