"""The histogram Beta mixture against EM on all samples, from the same start to the same likelihood."""

from __future__ import annotations

import math

import numpy as np
from tests.oracles import beta_em, beta_log_density

from benchmarks.timing import Case
from mispair.functional.mixture import fit_beta_mixture

PAIRS = 145_000


def cases() -> list[Case]:
    rng = np.random.default_rng(0)
    wrong = rng.random(PAIRS) < 0.4
    losses = np.where(wrong, rng.beta(5, 5, PAIRS), rng.beta(2, 9, PAIRS))
    x = np.clip((losses - losses.min()) / (losses.max() - losses.min()), 1e-3, 1 - 1e-3)
    target = fit_beta_mixture(losses).log_likelihood - 1e-4
    start = ((0.5, 0.5), ((2.0, 6.0), (6.0, 2.0)))

    def exact() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return beta_em(x, *start, target=target)

    def agreement() -> str:
        fit = fit_beta_mixture(losses)
        # Where exact EM ends if it goes on to convergence, so that decisions are compared at the optimum.
        weights, parameters, trace = beta_em(x, fit.weights, fit.parameters, tol=1e-7)
        low, high = (math.log(w) + beta_log_density(x, *p) for w, p in zip(weights, parameters, strict=True))
        equal = float(((high > low) == (fit.posterior_mismatched(losses) > 0.5)).mean())
        assert equal >= 0.999, equal
        assert abs(trace[-1] - fit.log_likelihood) < 1e-4
        return f"{100 * equal:.2f} % equal decisions"

    return [
        Case(
            f"beta mixture on {PAIRS:,} losses",
            "exact EM to the same likelihood (1e-4)",
            20,
            lambda: fit_beta_mixture(losses),
            exact,
            repeats=3,
            check=agreement,
        )
    ]
