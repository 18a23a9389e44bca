"""Dividing pairs by a mixture of their losses, so that training can always go on with what is left.

Letters: N pairs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mispair.functional.mixture import MixtureFit, WhenUnimodal, decide_mismatched, fit_mixture
from mispair.functional.mixture_families import Family
from mispair.types import Split

_NEARLY = 1e-9  # probabilities nearer to 0 or 1 count as this far from it, so that their odds can be moved
_LARGEST = 60.0  # by how much the logarithm of the odds is moved at most
_CLOSE = 1e-6  # to how much of it the move is sought


def split_losses(
    losses: NDArray[np.float64],
    family: Family,
    at_least: int,
    threshold: float = 0.5,
    when_unimodal: WhenUnimodal = "posterior",
) -> tuple[Split, MixtureFit]:
    """Fit two components to losses (N,) and call the likelier mismatched so (L2RM Eq. 4; NCR; BiCro).

    Where fewer than `at_least` pairs would be left to train on as given, those of smallest loss are trusted.
    """
    fit = fit_mixture(losses, family)
    mismatched = decide_mismatched(fit, losses, threshold, when_unimodal)
    return Split(fit.posterior_mismatched(losses), trust_at_least(mismatched, losses, at_least)), fit


def with_known(split: Split, known: NDArray[np.int8] | None, at_least: int) -> Split:
    """The split, with what people said above it: known (N,) is 1 mismatched, 0 matched, -1 nothing said.

    Where fewer than `at_least` pairs would be left to train on as given, the least suspicious others are trusted too.
    """
    if known is None:
        return split
    p = np.where(known >= 0, known, split.p_mismatch)
    mismatched = np.where(known >= 0, known == 1, split.mismatched)
    return Split(p, trust_at_least(mismatched, np.where(known == 1, np.inf, p), at_least))


def with_rate_between(p: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """The probabilities p (N,) moved so that their mean, the rate they amount to, is not below `low` nor above `high`.

    All odds are multiplied by one number, as where a classifier meets another share of its classes than it was made for
    (Saerens, Latinne, Decaestecker, Neural Computation 14, 2002): the order of the pairs stays as it is. Probabilities
    whose mean is there already come back as they are.
    """
    rate = min(max(float(p.mean()), low), high)
    if rate == p.mean():
        return p
    certain = np.clip(p, _NEARLY, 1 - _NEARLY)
    odds = np.log(certain / (1 - certain))
    low, high = -_LARGEST, _LARGEST
    while high - low > _CLOSE:
        middle = (low + high) / 2
        low, high = (middle, high) if _sigmoid(odds + middle).mean() < rate else (low, middle)
    return _sigmoid(odds + high)


def _sigmoid(odds: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(0.5 + 0.5 * np.tanh(odds / 2))


def trust_at_least(mismatched: NDArray[np.bool_], losses: NDArray[np.float64], at_least: int) -> NDArray[np.bool_]:
    """The decision (N,), with the `at_least` smallest losses called matched where fewer pairs were."""
    if np.count_nonzero(~mismatched) >= at_least:
        return mismatched
    trusted: NDArray[np.bool_] = mismatched.copy()
    trusted[np.argsort(losses, kind="stable")[:at_least]] = False
    return trusted
