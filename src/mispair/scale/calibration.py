"""From the counts of all shards to the probability of every pair: the one estimator, asked with a histogram.

Letters: K bins of the grid, n pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from mispair.auditing.calibration import CONVINCING, TILT, histogram_values
from mispair.functional.mismatch_rate import MismatchEstimate, design_effect_of, estimate_from_counts
from mispair.scale.frame import Yardstick
from mispair.scale.statistics import Statistics

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class GridCalibration:
    """What suspicion means, as a function on the grid."""

    edges: Floats  # (K + 1,)
    given: NDArray[np.int64]  # (K,)
    repaired: NDArray[np.int64]  # (K,)
    crowded: NDArray[np.int64]  # (H,) pairs of each crowded caption
    estimate: MismatchEstimate

    @classmethod
    def of_counts(
        cls,
        grid: tuple[float, float],
        given: Ints,
        repaired: Ints,
        crowded: Ints,
        image_pairs: Ints,
        image_suspects: Ints,
    ) -> GridCalibration:
        """From the counts of all shards together, see `Statistics`."""
        share = (np.cumsum(repaired) - repaired / 2 + 0.5) / (repaired.sum() + 1)  # at the middle of each bin
        scores = np.asarray(torch.special.ndtri(torch.from_numpy(share)).numpy())
        effect = design_effect_of(image_pairs, image_suspects) if len(image_pairs) else 1.0
        held = np.flatnonzero(given)
        estimate = estimate_from_counts(scores[held], given[held], effect)
        return cls(np.linspace(*grid, len(given) + 1), given, repaired, crowded, estimate)

    def normal_scores(self, suspicion: Floats) -> Floats:
        """The share of re-paired pairs that look better, as a quantile of the standard normal distribution: (n,)."""
        below = np.interp(suspicion, self.edges, np.concatenate([[0], np.cumsum(self.repaired)]))
        return np.asarray(torch.special.ndtri(torch.from_numpy((below + 0.5) / (self.repaired.sum() + 1))).numpy())

    def p_mismatch(self, suspicion: Floats, crowd: NDArray[np.int16]) -> Floats:
        """(n,), never falling with suspicion; a pair under a crowded caption has the probability of that caption."""
        place = np.interp(suspicion, self.edges, np.concatenate([[0], np.cumsum(self.given)])) / self.given.sum()
        p = (1 - TILT) * self.estimate.p_mismatch(self.normal_scores(suspicion)) + TILT * place * self.estimate.rate
        if len(self.crowded) == 0:
            return np.asarray(p)
        return np.where(crowd >= 0, (1 - 1 / np.maximum(self.crowded, 1))[crowd], p)

    def overall(self, rate: float) -> float:
        """The rate of all pairs, from that of the pairs with a caption of their own."""
        shared = self.crowded.sum() - np.count_nonzero(self.crowded)  # a caption belongs to one of its images
        return float((rate * self.given.sum() + shared) / (self.given.sum() + self.crowded.sum()))

    @property
    def convincing(self) -> float:
        """Suspicion below which a pair looks as matched as nearly all matched pairs do."""
        centres = (self.edges[:-1] + self.edges[1:]) / 2
        matched = self.given * (self.p_mismatch(centres, np.full(len(centres), -1, np.int16)) < 0.5)
        if matched.sum() == 0:
            return -np.inf
        return float(self.edges[1 + np.searchsorted(np.cumsum(matched), CONVINCING * matched.sum())])

    def histogram(self, bins: int = 60) -> dict[str, list[float]]:
        """Counts of given pairs by suspicion, and how many of them are matched and mismatched."""
        centres = (self.edges[:-1] + self.edges[1:]) / 2
        both = np.cumsum(self.given + self.repaired) / (self.given.sum() + self.repaired.sum())
        low, high = (centres[min(int(np.searchsorted(both, q)), len(centres) - 1)] for q in (0.001, 0.999))
        edges = np.linspace(low, max(high, low + 1e-9), bins + 1)
        at = centres.clip(edges[0], edges[-1])
        counts = np.histogram(at, edges, weights=self.given)[0]
        wrong = np.histogram(at, edges, weights=self.repaired)[0]
        wrong_among_given = self.estimate.rate * self.given.sum() * wrong / max(self.repaired.sum(), 1)
        return histogram_values(edges, counts, wrong_among_given)


@dataclass(frozen=True, eq=False)
class Calibrations:
    """By all evidence, which judges given pairs, and by score and ranks alone, which judges proposed ones."""

    full: GridCalibration
    near: GridCalibration


def calibrate_counts(whole: Statistics, full: Yardstick, near: Yardstick) -> Calibrations:
    """The calibrations of the whole set from the merged statistics and the grids they were counted on."""

    def of(grid: Yardstick, given: Ints, repaired: Ints) -> GridCalibration:
        ends = grid.low, grid.high
        return GridCalibration.of_counts(ends, given, repaired, whole.crowded, whole.image_pairs, whole.image_suspects)

    return Calibrations(of(full, whole.given, whole.repaired), of(near, whole.near_given, whole.near_repaired))
