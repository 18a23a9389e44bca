"""Dividing pairs by a mixture of their losses, so that training can always go on with what is left.

Letters: N pairs.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mispair.functional.families import Family
from mispair.functional.mixture import MixtureFit, decide_mismatched, fit_beta_mixture, fit_gaussian_mixture
from mispair.types import Split


def split_losses(
    losses: NDArray[np.float64],
    family: Family,
    at_least: int,
    threshold: float = 0.5,
    when_unimodal: Literal["posterior", "none", "top_percent"] = "posterior",
) -> tuple[Split, MixtureFit]:
    """Fit two components to losses (N,) and call the likelier mismatched so (NCR; BiCro).

    Where fewer than `at_least` pairs would be left to train on as given, those of smallest loss are trusted.
    """
    fit = (fit_beta_mixture if family == "beta" else fit_gaussian_mixture)(losses)
    mismatched = decide_mismatched(fit, losses, threshold, when_unimodal)
    return Split(fit.posterior_mismatched(losses), trust_at_least(mismatched, losses, at_least)), fit


def trust_at_least(mismatched: NDArray[np.bool_], losses: NDArray[np.float64], at_least: int) -> NDArray[np.bool_]:
    """The decision (N,), with the `at_least` smallest losses called matched where fewer pairs were."""
    if np.count_nonzero(~mismatched) >= at_least:
        return mismatched
    trusted: NDArray[np.bool_] = mismatched.copy()
    trusted[np.argsort(losses, kind="stable")[:at_least]] = False
    return trusted
