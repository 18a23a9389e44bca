"""Which pairs are mismatched, when it is known how mismatched ones look: a mixture with one component given.

Pairs mismatched on purpose give the density of mismatched ones (a smoothed histogram); matched pairs have a normal
component. This decides, as training has to in every epoch; how far the rate can be known at all is another question
(`mismatch_rate`).

Letters: N given pairs, Z pairs mismatched on purpose, K bins.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_ROUNDS = 300
_BINS = 100
_SMOOTH = np.exp(-0.5 * (np.arange(-6, 7) / 2.0) ** 2)  # over bins
_NARROWEST = 0.01  # in units of the spread of pairs mismatched on purpose


def posterior_mismatched(given: Floats, repaired: Floats) -> Floats:
    """Probability that a pair is mismatched, (N,), (Z,), larger is more suspicious -> (N,), never falling; by EM."""
    centre, unit = float(repaired.mean()), max(float(repaired.std()), 1e-12)
    values = (given - centre) / unit
    known = _density((repaired - centre) / unit, values)
    better = np.sort(values)[: max(len(values) // 2, 1)]
    rate, mean, spread = 0.5, float(better.mean()), max(float(better.std()), _NARROWEST)
    for _ in range(_ROUNDS):
        p = _posterior(values, known, rate, mean, spread)
        matched = 1 - p
        total = max(float(matched.sum()), 1e-9)
        rate, mean = float(p.mean()), float(matched @ values) / total
        spread = max(float(np.sqrt(matched @ (values - mean) ** 2 / total)), _NARROWEST)
    p = _posterior(values, known, rate, mean, spread)
    order = np.argsort(values, kind="stable")
    rising = p[order]
    first = int(np.searchsorted(values[order], mean))  # left of the matched mean no pair is more suspicious than there
    rising[:first] = np.minimum(rising[:first], rising[first:].min(initial=1.0))
    p[order] = np.maximum.accumulate(rising)
    return p


def _posterior(values: Floats, known: Floats, rate: float, mean: float, spread: float) -> Floats:
    mismatched = rate * known
    matched = (1 - rate) * np.exp(-0.5 * ((values - mean) / spread) ** 2) / (spread * np.sqrt(2 * np.pi))
    return np.asarray(mismatched / np.maximum(mismatched + matched, 1e-300))


def _density(sample: Floats, at: Floats) -> Floats:
    """Density of a sample (Z,) at (N,) values: a smoothed histogram that is nowhere 0."""
    low, high = min(sample.min(), at.min()), max(sample.max(), at.max())
    edges = np.linspace(low, high + 1e-9, _BINS + 1)
    counts = np.convolve(np.histogram(sample, edges)[0] + 0.5, _SMOOTH / _SMOOTH.sum(), "same")
    return np.asarray(np.interp(at, (edges[:-1] + edges[1:]) / 2, counts / (counts.sum() * (edges[1] - edges[0]))))
