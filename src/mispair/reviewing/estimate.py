"""How many pairs are mismatched, from a random sample that people looked at and what the model says of all.

Prediction-powered inference (Angelopoulos et al., Science 2023; the tuned form of PPI++, 2023): the model's mean over
all pairs, corrected by how far it is from the labels on the sample. The interval is valid whatever the model is worth;
a good model narrows it, a bad one is given the weight 0.

Letters: N pairs of the data set, n of them drawn uniformly and labelled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mispair.counted import counted
from mispair.errors import InputError

Floats = NDArray[np.float64]
_PSEUDO = 4  # labels added to an interval, half right and half wrong (Agresti and Coull, 1998): n may be 10
_Z = 1.959963984540054  # 95 %


@dataclass(frozen=True, slots=True)
class RateEstimate:
    """The share of mismatched pairs among all N, with its 95 % interval."""

    rate: float
    low: float
    high: float
    labelled: int  # n
    weight: float  # of the model's probabilities, 0 to 1
    labels_only: tuple[float, float]  # the interval that the same labels give without the model

    def sentence(self) -> str:
        """What a person reads: after so many pairs, so much (from, to)."""
        return f"after {counted(self.labelled, 'pair')}: {self.rate:.0%} ({self.low:.0%} to {self.high:.0%})"


def estimate_rate(labels: NDArray[np.bool_] | Floats, sampled_p: Floats, all_p: Floats) -> RateEstimate:
    """The mismatch rate of all pairs.

    Args:
        labels: (n,) whether each pair of the uniform sample is mismatched, as a person said.
        sampled_p: (n,) the model's probability for the same pairs.
        all_p: (N,) the model's probability for every pair, the sampled ones included.

    Returns:
        the estimate; with no label at all the interval is 0 to 1.

    Raises:
        InputError: lengths that differ, or values outside 0..1.
    """
    y, f = np.asarray(labels, np.float64), np.asarray(sampled_p, np.float64)
    everyone = np.asarray(all_p, np.float64)
    if y.shape != f.shape or y.ndim != 1 or len(y) > len(everyone):
        raise InputError(
            f"{len(f):,} probabilities for {len(y):,} labels of {len(everyone):,} pairs; expected one each"
        )
    for values in (y, f, everyone):
        if len(values) and not (values.min() >= 0 and values.max() <= 1):  # NaN fails too
            raise InputError("labels and probabilities must lie between 0 and 1")
    n = len(y)
    if n == 0:
        return RateEstimate(float(everyone.mean()) if len(everyone) else 0.0, 0.0, 1.0, 0, 1.0, (0.0, 1.0))
    weight = _weight(y, f)
    mean = float(everyone.mean())
    corrected = y + weight * (mean - f)  # (n,) unbiased for the rate, for any weight that the labels did not choose
    low, high = _interval(corrected, len(everyone), weight * (mean - 1), 1 + weight * mean)
    alone = _interval(y, len(everyone), 0.0, 1.0)
    if alone[1] - alone[0] < high - low:  # the model only blurs: the labels speak for themselves
        weight, corrected, (low, high) = 0.0, y, alone
    rate = min(max(float(corrected.mean()), low), high)
    return RateEstimate(rate, low, high, n, weight, alone)


def _weight(y: Floats, f: Floats) -> float:
    """The weight that narrows the interval most, cov(y, f) / var(f), shrunk towards 0 while labels are few."""
    n = len(y)
    spread = float(f.var())
    if n < 10 or spread <= 1e-12:
        return 0.0
    slope = float(((y - y.mean()) * (f - f.mean())).mean()) / spread
    return float(np.clip(slope, 0.0, 1.0)) * n / (n + 10)


def _interval(values: Floats, pairs: int, least: float, most: float) -> tuple[float, float]:
    """95 % interval of the mean of (n,) values drawn without replacement from `pairs`.

    Pseudo-labels at the `least` and the `most` a value can be stand for what so small a sample has not met yet.
    """
    n = len(values)
    total = n + _PSEUDO
    centre = (float(values.sum()) + _PSEUDO / 2 * (least + most)) / total
    squares = float(((values - centre) ** 2).sum()) + _PSEUDO / 2 * ((most - centre) ** 2 + (least - centre) ** 2)
    left = max(0.0, (pairs - n) / max(pairs - 1, 1))  # all labelled: nothing is left to be unsure of
    half = _Z * float(np.sqrt(squares / total / total * left))
    if left == 0.0:
        centre = float(values.mean())
    return max(0.0, centre - half), min(1.0, centre + half)
