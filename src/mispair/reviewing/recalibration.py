"""Probabilities mended by labels: a monotone map, as simple as the labels can support, chosen by cross-validation.

Letters: N pairs, n of them labelled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
CurveKind = Literal["none", "logistic", "isotonic"]
KINDS: tuple[CurveKind, ...] = ("none", "logistic", "isotonic")  # the simpler first: it wins where they are even
_FEWEST = 20  # labels below which nothing is changed
_FOLDS = 5
_EDGE = 1e-3  # probabilities stay this far from 0 and 1: labels never prove certainty


@dataclass(frozen=True)
class Recalibration:
    """A monotone map of probabilities. `kind` none leaves them as they are."""

    kind: CurveKind
    knots: Floats  # (k,) ascending logits
    values: Floats  # (k,) their probabilities, ascending
    losses: Mapping[CurveKind, float]  # cross-validated log loss of every kind

    def __call__(self, p: Floats) -> Floats:
        """(N,) -> (N,)."""
        if self.kind == "none":
            return p
        return np.interp(_logit(p), self.knots, self.values)


def recalibrate(p: Floats, labels: NDArray[np.bool_]) -> Recalibration:
    """The map that predicts held-out labels best.

    Args:
        p: (n,) the model's probability of the labelled pairs.
        labels: (n,) whether they are mismatched.

    Returns:
        the map; of kind none while there are fewer than 20 labels, or only one kind of label.
    """
    y = np.asarray(labels, np.float64)
    nothing = Recalibration("none", np.zeros(0), np.zeros(0), {})
    if len(y) < _FEWEST or y.min() == y.max():
        return nothing
    fold = np.random.default_rng(0).permutation(len(y)) % _FOLDS
    losses: dict[CurveKind, float] = {}
    for kind in KINDS:
        held = np.empty(len(y))
        for k in range(_FOLDS):
            learn = fold != k
            held[~learn] = _fit(kind, p[learn], y[learn])(p[~learn]) if y[learn].min() != y[learn].max() else p[~learn]
        losses[kind] = _log_loss(held, y)
    fitted = _fit(min(KINDS, key=losses.__getitem__), p, y)
    return Recalibration(fitted.kind, fitted.knots, fitted.values, dict(losses))


def _fit(kind: CurveKind, p: Floats, y: Floats) -> Recalibration:
    if kind == "none":
        return Recalibration("none", np.zeros(0), np.zeros(0), {})
    x = _logit(p)
    if kind == "logistic":
        grid = np.linspace(-8.0, 8.0, 201)
        slope, offset = _logistic(x, y)
        return Recalibration("logistic", grid, _bounded(_sigmoid(slope * grid + offset)), {})
    return Recalibration("isotonic", *_isotonic(x, y), {})


def _logistic(x: Floats, y: Floats, rounds: int = 50) -> tuple[float, float]:
    """Slope >= 0 and offset of a logistic regression by Newton's method; labels softened as Platt (1999) does."""
    up, down = y.sum(), len(y) - y.sum()
    target = np.where(y > 0, (up + 1) / (up + 2), 1 / (down + 2))
    beta = np.array([1.0, 0.0])
    design = np.column_stack([x, np.ones_like(x)])
    for _ in range(rounds):
        q = _sigmoid(design @ beta)
        gradient = design.T @ (q - target) + 1e-3 * (beta - [1.0, 0.0])
        curvature = (design * (q * (1 - q))[:, None]).T @ design + 1e-3 * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        beta = beta - step
        if np.abs(step).max() < 1e-9:
            break
    return max(float(beta[0]), 0.0), float(beta[1])


def _isotonic(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Pool adjacent violators: the ascending step function nearest to y, as knots at the middle of each step."""
    places, where, counts = np.unique(x, return_inverse=True, return_counts=True)
    sums = np.bincount(where, y)
    blocks: list[list[float]] = []  # sum of y, count, sum of x
    for value, count, place in zip(sums.tolist(), counts.tolist(), places.tolist(), strict=True):
        blocks.append([value, float(count), place * count])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] >= blocks[-1][0] / blocks[-1][1]:
            last = blocks.pop()
            blocks[-1] = [a + b for a, b in zip(blocks[-1], last, strict=True)]
    knots = np.array([block[2] / block[1] for block in blocks])
    values = np.array([(block[0] + 0.5) / (block[1] + 1.0) for block in blocks])  # a step of one label proves little
    return knots, _bounded(np.maximum.accumulate(values))


def _logit(p: Floats) -> Floats:
    inside = np.clip(np.asarray(p, np.float64), 1e-6, 1 - 1e-6)
    return np.log(inside / (1 - inside))


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -30, 30))))


def _bounded(p: Floats) -> Floats:
    return np.clip(p, _EDGE, 1 - _EDGE)


def _log_loss(p: Floats, y: Floats) -> float:
    inside = _bounded(p)
    return float(-(y * np.log(inside) + (1 - y) * np.log(1 - inside)).mean())
