"""How much each kind of evidence counts: what tells given from re-paired pairs (Elkan and Noto 2008).

Letters: N given pairs, Z re-paired ones, F kinds of evidence; larger is more suspicious.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def fit_weights(given: Floats, repaired: Floats) -> Floats:
    """(F,): what each kind of evidence counts, given (N, F) against re-paired (Z, F); suspicion is their sum."""
    centre, spread = _scale(np.concatenate([given, repaired]))
    return np.asarray(_tell_apart((given - centre) / spread, (repaired - centre) / spread) / spread)


def _scale(values: Floats) -> tuple[Floats, Floats]:
    spread = values.std(0)
    return values.mean(0), np.where(spread > 0, spread, 1.0)


def _tell_apart(given: Floats, repaired: Floats) -> Floats:
    """Weights of a logistic regression, given against re-paired, none below 0: (F,).

    A kind of evidence that would count the wrong way round is left out, the worst first: no pair may look worse for a
    better score or rank than another that is its equal in all else. Where every kind would, nothing tells given from
    re-paired pairs, and the first is asked to show it.
    """
    kept = np.arange(given.shape[1])
    while True:
        coefficients = _regress(given[:, kept], repaired[:, kept])
        if len(kept) == 1 or coefficients.min() >= 0:
            break
        kept = np.delete(kept, coefficients.argmin())
    weights = np.zeros(given.shape[1])
    weights[kept] = np.maximum(coefficients, 0.0)
    weights[0] += not weights.any()
    return weights


def _regress(given: Floats, repaired: Floats, ridge: float = 1.0) -> Floats:
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
