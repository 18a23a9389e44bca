"""Dividing pairs by a mixture of their losses, so that training can always go on with what is left.

Letters: N pairs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mispair.functional.mixture import MixtureFit, WhenUnimodal, decide_mismatched, fit_mixture
from mispair.functional.mixture_families import Family
from mispair.types import Split


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


def trust_at_least(mismatched: NDArray[np.bool_], losses: NDArray[np.float64], at_least: int) -> NDArray[np.bool_]:
    """The decision (N,), with the `at_least` smallest losses called matched where fewer pairs were."""
    if np.count_nonzero(~mismatched) >= at_least:
        return mismatched
    trusted: NDArray[np.bool_] = mismatched.copy()
    trusted[np.argsort(losses, kind="stable")[:at_least]] = False
    return trusted
