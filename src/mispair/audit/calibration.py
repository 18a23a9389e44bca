"""How probable is it that a pair is mismatched? Compare it with pairs that certainly are: re-paired at random.

Nobody knows which given pairs are wrong, but anybody can make wrong ones: an image with the caption of another row.
Given pairs are a mixture of matched ones and of such. So what tells given from re-paired pairs tells matched from
mismatched ones (Elkan and Noto 2008), the share of given pairs among the unlikely-looking ones is the mismatch rate
(Storey 2002), and the ratio of the two densities is the local false discovery rate (Efron 2001), which is p_mismatch.
No threshold, and no shape of a distribution, has to be guessed.

Letters: N given pairs, Z re-paired ones, F kinds of evidence, Q levels, S bootstrap samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_LEVELS = np.linspace(0.3, 0.8, 21)  # quantiles of the re-paired above which hardly any matched pair lies
_SAMPLES = 200
_APART = 0.8  # share of pairs that must be tellable for the verdicts to mean something
_CONVINCING = 0.95
_TILT = 2e-3  # how far p is tilted by the order, so that certain pairs still have one


@dataclass(frozen=True, slots=True)
class Calibration:
    """Probabilities of the given pairs, and how to judge any other."""

    p_mismatch: Floats  # (N,)
    rate: float
    rate_low: float
    rate_high: float
    apart: bool  # whether matched pairs stand apart from re-paired ones
    weights: Floats  # (F,)
    suspicion: Floats  # (N,) larger: more like a re-paired pair
    repaired: Floats  # (Z,) the same of the re-paired pairs

    def convinces(self, evidence: Floats) -> NDArray[np.bool_]:
        """Whether pairs with this evidence, (C, F), look as matched as nearly all matched pairs do: (C,).

        Stricter than p < 1/2: a candidate is the best of many, so that chance alone makes it look better than most.
        """
        matched = self.suspicion[self.p_mismatch < 0.5]
        level = np.quantile(matched, _CONVINCING) if len(matched) else -np.inf
        return np.asarray(evidence @ self.weights <= level)

    def histogram(self, bins: int = 60) -> dict[str, list[float]]:
        """Counts of given pairs by suspicion, and how many of them are matched and mismatched."""
        low, high = np.quantile(np.concatenate([self.suspicion, self.repaired]), (0.001, 0.999))
        edges = np.linspace(low, max(high, low + 1e-9), bins + 1)
        counts = np.histogram(self.suspicion.clip(edges[0], edges[-1]), edges)[0]
        wrong = np.histogram(self.repaired.clip(edges[0], edges[-1]), edges)[0]
        mismatched = np.minimum(self.rate * len(self.suspicion) * wrong / max(len(self.repaired), 1), counts)
        return {
            "edges": edges.tolist(),
            "counts": counts.tolist(),
            "matched": (counts - mismatched).tolist(),
            "mismatched": mismatched.tolist(),
        }


def calibrate(given: Floats, repaired: Floats, groups: NDArray[np.int64], history: Floats | None = None) -> Calibration:
    """given (N, F), repaired (Z, F): evidence, larger is more suspicious; groups (N,): the image of each pair.

    Pairs of one image tend to be wrong together, so the interval resamples images. `history` (N,) is a loss averaged
    over the epochs of the training: a pair that was learned by heart late still shows there. Re-paired pairs have none,
    so it changes the order of the pairs, not how many are how probable.
    """
    centre, spread = _scale(np.concatenate([given, repaired]))
    weights = _tell_apart((given - centre) / spread, (repaired - centre) / spread) / spread
    suspicion, wrong = given @ weights, repaired @ weights
    rate, low, high = _rate(suspicion, wrong, groups)
    centres, ratio = _density_ratio(suspicion, wrong)
    p = np.clip(rate * np.interp(suspicion, centres, ratio), 0.0, 1.0)
    order = suspicion if history is None else _standard(suspicion) + _standard(history)
    place = np.empty(len(p), np.int64)
    place[np.argsort(order, kind="stable")] = np.arange(len(p))
    p = (1 - _TILT) * np.sort(p)[place] + _TILT * (place + 0.5) / len(p)
    apart = _apart(suspicion, wrong, rate)
    return Calibration(p, rate, low, high, apart, weights, suspicion, wrong)


def _scale(values: Floats) -> tuple[Floats, Floats]:
    spread = values.std(0)
    return values.mean(0), np.where(spread > 0, spread, 1.0)


def _standard(values: Floats) -> Floats:
    spread = values.std()
    return np.asarray((values - values.mean()) / (spread if spread > 0 else 1.0))


def _tell_apart(given: Floats, repaired: Floats, ridge: float = 1.0) -> Floats:
    """Weights of a logistic regression, given against re-paired, by Newton's method: (F,)."""
    x = np.concatenate([given, repaired])
    x = np.column_stack([np.ones(len(x)), x])
    label = np.concatenate([np.zeros(len(given)), np.ones(len(repaired))])
    w = np.zeros(x.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(x @ w, -30, 30)))
        curvature = (x * (p * (1 - p))[:, None]).T @ x + ridge * np.eye(len(w))
        step = np.linalg.solve(curvature, x.T @ (label - p) - ridge * w)
        w += step
        if np.abs(step).max() < 1e-8:
            break
    return np.asarray(w[1:])


def _rate(suspicion: Floats, wrong: Floats, groups: NDArray[np.int64]) -> tuple[float, float, float]:
    """Share of given pairs above levels that a known share of the re-paired exceeds; 95 % interval over images."""
    levels = np.quantile(wrong, _LEVELS)
    expected = np.maximum((wrong[:, None] > levels).mean(0), 1e-9)
    exceeds = (suspicion[:, None] > levels).astype(np.float64)
    _, group = np.unique(groups, return_inverse=True)
    sizes = np.bincount(group).astype(np.float64)
    per_group = np.stack([np.bincount(group, column) for column in exceeds.T], 1)
    rate = float(np.median(per_group.sum(0) / len(suspicion) / expected))
    drawn = np.random.default_rng(0).poisson(1.0, (_SAMPLES, len(sizes)))
    shares = (drawn @ per_group) / np.maximum(drawn @ sizes, 1)[:, None]
    low, high = np.quantile(np.median(shares / expected, 1), (0.025, 0.975))
    return min(rate, 1.0), min(float(low), 1.0), min(float(high), 1.0)


def _density_ratio(suspicion: Floats, wrong: Floats) -> tuple[Floats, Floats]:
    """Density of the re-paired over that of the given, never falling with suspicion: by isotonic regression."""
    pooled = np.concatenate([suspicion, wrong])
    bins = int(np.clip(len(pooled) // 50, 4, 256))
    edges = np.unique(np.quantile(pooled, np.linspace(0, 1, bins + 1)))
    if len(edges) < 2:
        return edges, np.ones(len(edges))
    edges[-1] = np.nextafter(edges[-1], np.inf)
    own, others = np.histogram(suspicion, edges)[0], np.histogram(wrong, edges)[0]
    share = _never_falling(others / (own + others), own + others).clip(0, 1 - 1e-9)
    return (edges[:-1] + edges[1:]) / 2, share / (1 - share) * (len(suspicion) / len(wrong))


def _never_falling(values: Floats, weights: NDArray[np.int64]) -> Floats:
    """The closest sequence that never falls (pool adjacent violators)."""
    blocks: list[tuple[float, float, int]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        blocks.append((value, weight, 1))
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            (v1, w1, n1), (v2, w2, n2) = blocks[-2], blocks.pop()
            blocks[-1] = ((v1 * w1 + v2 * w2) / (w1 + w2), w1 + w2, n1 + n2)
    return np.repeat(np.array([value for value, _, _ in blocks]), [count for _, _, count in blocks])


def _apart(suspicion: Floats, wrong: Floats, rate: float) -> bool:
    """Whether the matched share of the given pairs is told from re-paired pairs: their AUROC, unmixed.

    AUROC(given, re-paired) = (1 - rate) · AUROC(matched, re-paired) + rate / 2, since mismatched are like re-paired.
    """
    below = np.searchsorted(np.sort(suspicion), wrong, "left").mean() / len(suspicion)
    error = np.sqrt((1 / len(suspicion) + 1 / len(wrong)) / 12)  # of an AUROC where there is nothing to tell
    return bool(below - 0.5 > 4 * error and rate < 0.99 and (below - rate / 2) / (1 - rate) > _APART)
