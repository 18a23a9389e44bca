"""How many pairs are mismatched, and how probable is it of each? Pairs that certainly are show what those look like.

Anybody can make mismatched pairs: an image with the caption of another row. Given pairs are a mixture of matched ones
and of such, so a pair is described by its *normal score*: the share of re-paired pairs that look better, as a quantile
of the standard normal distribution. Mismatched pairs then follow N(0, 1) by construction, whatever was measured, and
matched ones lie below: at -d + s e, where e is N(0, 1), the strength d differs from pair to pair (Gamma) and the width
s falls with the mean strength (a judge that tells nothing gives N(0, 1) again).

Two things nobody can know from the scores alone, and the interval holds both. How weak the weakest matched pairs are:
every member of the family that explains the scores counts, by its likelihood (a posterior on a grid, flat in the rate,
the mean strength and the rest). And which matched pairs look exactly like mismatched ones, a caption that describes
nothing for instance: their share among the matched has an exponential prior whose mean is `_OPAQUE` times what the
judge lacks to AUROC 1, and for the low end of the interval .03 at least.
The high end is never below what holds whatever matched pairs look like: beyond any score lie all mismatched pairs that
belong there.
The rate asked for is that of these very pairs, not of a population they were drawn from: given a member of the family
every pair has a probability, and the rate varies around their mean as far as single pairs are open. A judge that leaves
none open gives a narrow interval however few the pairs are.
The family is never quite true. So all pairs that beat 99 % of the re-paired ones are one bin (how far they beat them
shapes the family where nothing is in doubt, and misled it where something is), and the likelihood counts at most
`_COARSE` pairs (Miller and Dunson, Robust Bayesian inference via coarsening, JASA 2019), for the interval half as many:
how far the family is off moves the rate less than it moves what would have been called certain.

Letters: N given pairs, Z re-paired ones, K bins of normal scores, U rates, T members of the family, C (rate, member).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from mispair.errors import InputError

Floats = NDArray[np.float64]

_EDGES = np.linspace(-2.4, 2.4, 41)  # of the bins of normal scores; the outer two are open
_LIKE_RANDOM = np.linspace(0.0, 1.0, 101)  # share of pairs that look re-paired, of the population
_RATES = np.linspace(0.0, 1.0, 201)  # of these very pairs
_STRENGTHS = np.linspace(0.3, 6.0, 20)  # mean d, beside 0: the judge tells nothing
_SHAPES = (2.0, 4.0, 10.0, 50.0)  # of the Gamma distribution of d: how much pairs differ
_NARROWING = (0.0, 0.1, 0.2)  # s = 1 - this * mean d
_NARROWEST = 0.5
_OPAQUE = 0.25
_FEWEST_OPAQUE = 0.002
_FEWEST_OPAQUE_LOW = 0.03  # at the low end: few sets have no captions that describe nothing, however good the judge
_OPAQUE_SHARES = np.linspace(0.0, 5.0, 26)  # in units of their mean
_COARSE = 3000.0
_COARSE_INTERVAL = 1500.0
_BEYOND = [0, 10, 20, 26, 31]  # edges beyond which .99, .9, a half, a quarter and a tenth of re-paired pairs look worse
_AT_A_TIME = 16  # rates
_NEGLIGIBLE = 10.0  # below the best log likelihood
_DROP = 1.92  # of the log likelihood, at the ends of a 95 % interval of one parameter
_TELLING = 0.3  # width of the interval from which the judge cannot tell


@dataclass(frozen=True, slots=True)
class MismatchEstimate:
    """The rate of mismatched pairs with a 95 % interval, and the probability of a pair by its normal score."""

    rate: float
    low: float
    high: float
    separation: float  # AUROC with which this judge tells matched from mismatched pairs, as far as it can be known
    scores: Floats  # (K,) ascending normal scores
    p: Floats  # (K,) their probabilities, never falling

    @property
    def conclusive(self) -> bool:
        """Whether the interval says something; if not, this judge cannot tell."""
        return self.high - self.low < _TELLING

    def p_mismatch(self, scores: Floats) -> Floats:
        """Probability of being mismatched, (N,) normal scores -> (N,), never falling with the score."""
        return np.interp(scores, self.scores, self.p)


def normal_scores(suspicion: Floats, repaired: Floats) -> Floats:
    """Where given pairs stand among re-paired ones: (N,), (Z,), larger is more suspicious -> (N,).

    Raises:
        InputError: a value that is not finite, or no re-paired pair at all.
    """
    given, others = _checked("suspicion", suspicion), np.sort(_checked("repaired", repaired))
    below = (np.searchsorted(others, given, "left") + np.searchsorted(others, given, "right")) / 2  # ties: the middle
    return np.asarray(torch.special.ndtri(torch.from_numpy((below + 0.5) / (len(others) + 1))).numpy())


def estimate_mismatch(scores: Floats, groups: NDArray[np.int64]) -> MismatchEstimate:
    """The rate and the probabilities, from (N,) normal scores and the image (N,) of each pair.

    Pairs of one image tend to be wrong together: the likelihood counts as many pairs as would vary as much alone.
    """
    y = _checked("scores", scores)
    if groups.shape != y.shape:
        raise InputError(f"groups must be one per pair, got shapes {groups.shape} and {y.shape}")
    effect = _design_effect((y > 0).astype(np.float64), groups)
    return estimate_from_counts(y, np.ones(len(y), np.int64), effect)


def estimate_from_counts(scores: Floats, pairs: NDArray[np.int64], design_effect: float) -> MismatchEstimate:
    """The same from (K',) normal scores that stand for so many `pairs` each.

    Args:
        design_effect: how much more the pairs vary together than alone, 1 or more, see `design_effect_of`.
    """
    total = int(pairs.sum())
    share = np.bincount(np.searchsorted(_EDGES, scores), pairs, len(_EDGES) + 1) / total
    independent = total / design_effect
    best = _posterior(share, independent, _COARSE, _FEWEST_OPAQUE)
    few, more = (
        _interval(_posterior(share, independent, _COARSE_INTERVAL, fewest))
        for fewest in (_FEWEST_OPAQUE, _FEWEST_OPAQUE_LOW)
    )
    rate = float(best.rates @ _RATES)
    return MismatchEstimate(
        rate=rate,
        low=min(few[0], more[0], rate),
        high=max(few[1], more[1], rate, _bound_from_above(share, independent)),
        separation=best.separation,
        scores=np.concatenate([_EDGES[:1], (_EDGES[:-1] + _EDGES[1:]) / 2, _EDGES[-1:]]),
        p=_level_then_rising(best.p),
    )


class _Posterior(NamedTuple):
    """What is known where the likelihood counts at most so many pairs."""

    rates: Floats  # (U,) probability of every rate
    fits: Floats  # (U,) log likelihood of every rate, at the best
    p: Floats  # (K,) probability of being mismatched, by bin
    separation: float


def _posterior(share: Floats, independent: float, coarse: float, fewest: float) -> _Posterior:
    weight, like_random, auroc = _explanations(share, independent * coarse / (independent + coarse))
    separation = float(weight @ auroc)
    mean = share @ like_random
    spread = np.sqrt(share @ (like_random * (1 - like_random)) / independent) + 1e-4
    as_suspicious, fits = _by_rate(weight, mean, spread)
    opaque = max(_OPAQUE * (1 - separation), fewest) * _OPAQUE_SHARES
    prior = np.exp(-_OPAQUE_SHARES)
    prior /= prior.sum()
    # Where a share r is mismatched and a share o of the others opaque, r + (1 - r) o look re-paired.
    rates = prior @ np.stack([np.interp(_RATES + (1 - _RATES) * o, _RATES, as_suspicious) for o in opaque])
    rates /= rates.sum()
    really = prior @ np.clip((mean - opaque[:, None]) / (1 - opaque[:, None]) / np.maximum(mean, 1e-9), 0.0, 1.0)
    fits = np.max(
        [np.interp(_RATES + (1 - _RATES) * o, _RATES, fits) - k for k, o in zip(_OPAQUE_SHARES, opaque, strict=True)],
        axis=0,
    )
    return _Posterior(rates, fits, like_random @ (weight * really), separation)


def _by_rate(weight: Floats, mean: Floats, spread: Floats) -> tuple[Floats, Floats]:
    """Of every share of pairs that may look re-paired, (U,): its posterior, and how well it fits at the best.

    From what each explanation expects, (C,) weights, means and spreads. Few pairs leave fifteen thousand explanations
    open, so some rates at a time.
    """
    edges = np.concatenate([[-np.inf], (_RATES[1:] + _RATES[:-1]) / 2, [np.inf]])
    posterior, fits = np.empty(len(_RATES)), np.empty(len(_RATES))
    for start in range(0, len(_RATES), _AT_A_TIME):
        some = slice(start, start + _AT_A_TIME)
        below = _cdf((edges[start : start + _AT_A_TIME + 1, None] - mean) / spread)
        posterior[some] = np.diff(below, axis=0) @ weight
        fits[some] = np.max(np.log(weight) - ((_RATES[some, None] - mean) / spread) ** 2 / 2, axis=1)
    return posterior, fits


def _explanations(share: Floats, count: float) -> tuple[Floats, Floats, Floats]:
    """What explains the share (K,) of pairs in every bin, where they count as `count` pairs.

    Weight (C,), which sum to 1; share of each bin that looks re-paired by being so (K, C); AUROC of the member (C,).
    """
    random, family, auroc = _random(), *_family()
    likelihood = np.empty((len(_LIKE_RANDOM), family.shape[1]))
    for i, u in enumerate(_LIKE_RANDOM):
        likelihood[i] = count * share @ np.log(u * random[:, None] + (1 - u) * family)
    rates, members = np.nonzero(likelihood > likelihood.max() - _NEGLIGIBLE)
    weight = np.exp(likelihood[rates, members] - likelihood.max())
    mismatched = _LIKE_RANDOM[rates] * random[:, None]
    given = mismatched + (1 - _LIKE_RANDOM[rates]) * family[:, members]
    return weight / weight.sum(), mismatched / given, auroc[members]


def _interval(known: _Posterior) -> tuple[float, float]:
    """The most probable rates, which hold 95 % of the posterior, and those that fit nearly as well as the best: where
    the scores say little the two differ, and either may be too narrow."""
    order = np.argsort(-known.rates, kind="stable")
    probable = order[: int(np.searchsorted(np.cumsum(known.rates[order]), 0.95)) + 1]
    inside = np.union1d(probable, np.flatnonzero(known.fits >= known.fits.max() - _DROP))
    return float(_RATES[inside[0]]), float(_RATES[inside[-1]])


def _bound_from_above(share: Floats, independent: float) -> float:
    """No more pairs can be mismatched than look so: beyond a score lie as many of them as of re-paired ones.

    Where a share x of the pairs lies and q of the re-paired, at most so many pairs are mismatched that x would be the
    1.25th percentile of how many of them a draw with probability q leaves there: half of the usual, because
    of several scores the one that says most counts.
    """
    beyond, repaired = (np.cumsum(of[::-1])[::-1][1:][_BEYOND] for of in (share, _random()))
    half = 2.24**2 * (1 - repaired) / (2 * independent)
    highest = beyond + half + np.sqrt(2 * half * beyond + half**2)
    return float(min(1.0, (highest / repaired).min()))


def _level_then_rising(p: Floats) -> Floats:
    """Left of its lowest value p stays there (two normal densities cross twice); from there on it never falls."""
    lowest = int(p.argmin())
    return np.maximum.accumulate(np.concatenate([np.full(lowest, p[lowest]), p[lowest:]])).clip(0.0, 1.0)


def _design_effect(values: Floats, groups: NDArray[np.int64]) -> float:
    """How much more the sum of (N,) values varies than if all pairs were independent, 1 or more."""
    place = np.unique(groups, return_inverse=True)[1]
    return design_effect_of(np.bincount(place), np.bincount(place, values))


def design_effect_of(sizes: NDArray[np.int64] | Floats, ones: NDArray[np.int64] | Floats) -> float:
    """The same from groups (G,) of so many pairs, of which `ones` have the value 1 and the others 0."""
    mean = float(ones.sum() / sizes.sum())
    spread = float(sizes.sum()) * mean * (1 - mean)
    return max(1.0, float(((ones - sizes * mean) ** 2).sum()) / spread) if spread > 0 else 1.0


def _cdf(values: Floats) -> Floats:
    return np.asarray(torch.special.ndtr(torch.from_numpy(np.ascontiguousarray(values))).numpy())


def _random() -> Floats:
    """Share of re-paired pairs in every bin, (K,)."""
    return np.diff(np.concatenate([[0.0], _cdf(_EDGES), [1.0]]))


@lru_cache(maxsize=1)
def _family() -> tuple[Floats, Floats]:
    """Share of matched pairs in every bin, (K, T), and AUROC against re-paired ones, (T,), of every member."""
    strength = np.arange(0.05, 14, 0.1)
    random = _random()
    shares = [random]  # strength 0
    for mean in _STRENGTHS:
        for shape in _SHAPES:
            log_density = (shape - 1) * np.log(strength) - strength * shape / mean
            density = np.exp(log_density - log_density.max())
            density /= density.sum()
            for narrowing in _NARROWING:
                width = max(_NARROWEST, 1 - narrowing * mean)
                below = _cdf((_EDGES[:, None] + strength) / width) @ density
                shares.append(np.diff(np.concatenate([[0.0], below, [1.0]])))
    family = np.maximum(np.array(shares).T, 1e-12)
    return family, (1 - np.cumsum(random) + random / 2) @ family


def _checked(name: str, values: Floats) -> Floats:
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or len(array) == 0:
        raise InputError(f"{name} must be one value per pair, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise InputError(f"{name} must be finite, got NaN or infinity at pair {int((~np.isfinite(array)).argmax())}")
    return array
