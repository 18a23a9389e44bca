"""Two-component mixtures of per-pair losses: which pairs are mismatched, and how many?

Letters: N losses. `mixture_em` fits, `mixture_families` knows the two distributions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, get_args, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mispair.errors import InputError
from mispair.functional.mixture_em import Bins, em, histogram, log_joint, starts
from mispair.functional.mixture_families import (
    EDGE,
    Family,
    from_moments,
    moments,
    monotone_part,
    most_likely,
    natural,
    normaliser,
    statistics,
)

WhenUnimodal = Literal["posterior", "none", "none_if_tail", "top_percent"]
SEPARATED = 2.0  # Ashman's D from which two components count as two
_GAIN = 0.01  # mean log likelihood two components must gain over one Beta to count as two


@dataclass(frozen=True, slots=True)
class MixtureFit:
    """Two components over losses; the matched pairs are the component with the lower mean.

    `weights`, `parameters` and `means` list the matched component first. Parameters are (α, β) or (mean, standard
    deviation) on the normalised scale, on which `low` is 0 and `high` is 1.
    """

    family: Family
    weights: tuple[float, float]
    parameters: tuple[tuple[float, float], tuple[float, float]]
    low: float
    high: float
    converged: bool
    iterations: int
    log_likelihood: float  # mean log density of a loss on the normalised scale
    bimodal: bool  # whether the losses really show two groups; if not, do not believe the split
    bins: Bins = field(repr=False, compare=False)

    @property
    def means(self) -> tuple[float, float]:
        """Mean loss of each component, in the units of the losses."""
        inner = moments(self.family, torch.tensor(self.parameters, dtype=torch.float64))[0].tolist()
        return self._loss(inner[0]), self._loss(inner[1])

    @property
    def mismatch_rate(self) -> float:
        """Estimated share of mismatched pairs."""
        return self.weights[1]

    @property
    def mismatch_rate_ci(self) -> tuple[float, float]:
        """95 % interval of `mismatch_rate`, by refitting resampled histograms (deterministic)."""
        return _bootstrap_rate(self)

    @property
    def apart(self) -> float:
        """Ashman's D: how many of their own widths lie between the components; below 2 they do not show as two.

        Two Gauss components fitted to one skewed group come out around 1.6, whatever the skew.
        """
        return _apart(self.family, torch.tensor(self.parameters, dtype=torch.float64))

    @property
    def is_tail(self) -> bool:
        """Whether the upper component is but the tail of one group: not apart, and holding few of the pairs."""
        return self.apart < SEPARATED and self.mismatch_rate < 0.25

    @property
    def threshold(self) -> float:
        """The loss above which a pair is more likely mismatched than matched; ±inf if it never or always is."""
        low, high = EDGE, 1 - EDGE
        if self._inner_posterior(torch.tensor([low], dtype=torch.float64)).item() >= 0.5:
            return -math.inf
        if self._inner_posterior(torch.tensor([high], dtype=torch.float64)).item() < 0.5:
            return math.inf
        for _ in range(60):  # the posterior is monotone: bisect
            middle = (low + high) / 2
            below = self._inner_posterior(torch.tensor([middle], dtype=torch.float64)).item() < 0.5
            low, high = (middle, high) if below else (low, middle)
        return self._loss(high)

    @overload
    def posterior_mismatched(self, losses: Tensor) -> Tensor: ...
    @overload
    def posterior_mismatched(self, losses: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def posterior_mismatched(self, losses: Tensor | NDArray[np.float64]) -> Tensor | NDArray[np.float64]:
        """Probability that each pair is mismatched, (N,) -> (N,), never falling as the loss grows.

        Two densities of one family cross twice. Behind the second crossing the ratio turns around, so that the very
        largest (or smallest) losses would be called the wrong way; there the posterior stays at its turning value.
        """
        x = _normalise(_checked(losses), self.low, self.high)
        posterior = self._inner_posterior(x)
        return posterior.to(losses) if isinstance(losses, Tensor) else posterior.numpy()

    def _inner_posterior(self, x: Tensor) -> Tensor:
        if self.weights[1] <= 0 or self.weights[0] <= 0:
            return torch.full_like(x, float(self.weights[1] > 0))
        parameters = torch.tensor(self.parameters, dtype=torch.float64)
        first, second = natural(self.family, parameters)
        slope = second - first
        x = monotone_part(self.family, slope, x)
        offset = math.log(self.weights[1] / self.weights[0]) - float(normaliser(self.family, parameters).diff())
        return torch.sigmoid(statistics(self.family, x) @ slope + offset)

    def _loss(self, x: float) -> float:
        return self.low + x * (self.high - self.low)


def fit_mixture(
    losses: Tensor | NDArray[np.float64], family: Family, *, tol: float = 1e-8, max_iter: int = 500, bins: int = 1024
) -> MixtureFit:
    """Two components of the named family ("beta" or "gaussian"); see the function of that name."""
    if family not in get_args(Family):
        raise InputError(f"family must be one of {', '.join(get_args(Family))}, got {family!r}")
    return _fit(family, losses, tol, max_iter, bins)


def fit_beta_mixture(
    losses: Tensor | NDArray[np.float64], *, tol: float = 1e-8, max_iter: int = 500, bins: int = 1024
) -> MixtureFit:
    """Two Beta components on min-max normalised losses by maximum likelihood (L2RM Sec. 4.1; Arazo et al. 2019).

    Args:
        losses: (N,) finite, in any unit; at least two.
        tol: change of the mean log likelihood at which EM stops.
        max_iter: rounds of EM at most.
        bins: cells of the histogram the fit is made on, at least 16.

    Returns:
        `MixtureFit`: `mismatch_rate` with its interval, `posterior_mismatched`, and whether there are two groups.

    Example:
        >>> fit = fit_beta_mixture(losses)
        >>> fit.mismatch_rate, fit.posterior_mismatched(losses) > 0.5
    """
    return _fit("beta", losses, tol, max_iter, bins)


def fit_gaussian_mixture(
    losses: Tensor | NDArray[np.float64], *, tol: float = 1e-8, max_iter: int = 500, bins: int = 1024
) -> MixtureFit:
    """Two Gauss components on min-max normalised losses by maximum likelihood (NCR's split).

    Args:
        losses: (N,) finite, in any unit; at least two.
        tol, max_iter, bins: as for `fit_beta_mixture`.

    Returns:
        `MixtureFit`.

    Example:
        >>> fit_gaussian_mixture(losses).mismatch_rate
    """
    return _fit("gaussian", losses, tol, max_iter, bins)


def decide_mismatched(
    fit: MixtureFit,
    losses: NDArray[np.float64],
    threshold: float = 0.5,
    when_unimodal: WhenUnimodal = "posterior",
) -> NDArray[np.bool_]:
    """Which pairs to treat as mismatched, (N,) -> bool (N,).

    `when_unimodal` says what to do if the fit found only one group: believe the posterior all the same, call
    nobody mismatched, or call the 1 % largest losses mismatched (what NCR does when it finds no noise). none_if_tail
    calls nobody mismatched where the upper component is but a tail of the other (`MixtureFit.is_tail`), and believes
    the posterior elsewhere: a large component that overlaps holds mismatched pairs the network cannot tell well yet.
    """
    if not 0 < threshold < 1:
        raise InputError(f"threshold must be between 0 and 1, got {threshold}")
    if when_unimodal not in get_args(WhenUnimodal):
        raise InputError(f"when_unimodal must be one of {', '.join(get_args(WhenUnimodal))}, got {when_unimodal!r}")
    if fit.is_tail if when_unimodal == "none_if_tail" else when_unimodal == "none" and not fit.bimodal:
        return np.zeros(len(losses), dtype=bool)
    if when_unimodal != "top_percent" or fit.bimodal:
        return fit.posterior_mismatched(losses) > threshold
    worst = np.argsort(losses, kind="stable")[len(losses) - max(1, len(losses) // 100) :]
    decision = np.zeros(len(losses), dtype=bool)
    decision[worst] = True
    return decision


def _checked(losses: Tensor | NDArray[np.float64]) -> Tensor:
    values = losses.detach().cpu() if isinstance(losses, Tensor) else torch.tensor(np.asarray(losses, np.float64))
    values = values.double()
    if values.ndim != 1:
        raise InputError(f"losses must be one value per pair, shape (N,), got shape {tuple(values.shape)}")
    finite = torch.isfinite(values)
    if not bool(finite.all()):
        wrong = int((~finite).sum())
        first = int((~finite).nonzero()[0])
        raise InputError(
            f"losses must be finite, but {wrong} of {len(values)} are NaN or infinite (the first at pair {first}); "
            "a diverged model gives such losses: lower the learning rate or look at the features of that pair"
        )
    return values


def _normalise(losses: Tensor, low: float, high: float) -> Tensor:
    return ((losses - low) / (high - low) if high > low else torch.zeros_like(losses)).clamp(EDGE, 1 - EDGE)


def _fit(family: Family, losses: Tensor | NDArray[np.float64], tol: float, max_iter: int, bins: int) -> MixtureFit:
    values = _checked(losses)
    if len(values) < 2:
        raise InputError(f"losses must hold at least two pairs, got {len(values)}")
    if bins < 16 or max_iter < 1 or not tol > 0:
        raise InputError(f"bins >= 16, max_iter >= 1 and tol > 0 are needed, got {bins}, {max_iter} and {tol}")
    low, high = float(values.min()), float(values.max())
    seen = histogram(family, _normalise(values, low, high), bins)
    if len(seen.counts) < 2:  # one value repeated: everybody is alike, so nobody is mismatched
        one = tuple(from_moments(family, seen.centres[:1], torch.zeros(1, dtype=torch.float64))[0].tolist())
        return MixtureFit(family, (1.0, 0.0), (one, one), low, high, True, 0, 0.0, False, seen)
    weights, parameters = starts(family, seen)
    counts = seen.counts.expand(len(weights), -1)
    weights, parameters, likelihood, _, tried = em(family, seen, counts, weights, parameters, tol, min(10, max_iter))
    best = likelihood.argmax(keepdim=True)
    weights, parameters, likelihood, converged, iterations = em(
        family, seen, counts[:1], weights[best], parameters[best], tol, max(max_iter - tried, 1)
    )
    order = moments(family, parameters[0])[0].argsort()
    weight, parameter = weights[0][order], parameters[0][order]
    return MixtureFit(
        family,
        (float(weight[0]), float(weight[1])),
        (tuple(parameter[0].tolist()), tuple(parameter[1].tolist())),
        low,
        high,
        converged,
        tried + iterations,
        float(likelihood[0]),
        # Whether there are two groups is a fact about the losses, so one family judges it for both: a Gauss component
        # at the edge has no tail to lie in, and loses likelihood to a Beta for that alone.
        _bimodal(weight, parameter, float(likelihood[0]), seen)
        if family == "beta"
        else _fit("beta", values, tol, max_iter, bins).bimodal,
        seen,
    )


def _bimodal(weights: Tensor, parameters: Tensor, likelihood: float, bins: Bins) -> bool:
    """Whether Beta components are apart (Ashman's D), both hold 1 % of the pairs, and one Beta would not do as well.

    The comparison with a single Beta, which can be flat, skewed or peaked, keeps wide one-group losses from passing.
    """
    share = bins.counts / bins.counts.sum()
    centre = (share * bins.centres).sum()
    target = (share.unsqueeze(-1) * statistics("beta", bins.centres)).sum(0)
    single = from_moments("beta", centre, (share * (bins.centres - centre) ** 2).sum())
    for _ in range(10):
        single = most_likely("beta", target, single)
    alone = float(natural("beta", single) @ target - normaliser("beta", single))
    return _apart("beta", parameters) > SEPARATED and float(weights.min()) >= 0.01 and likelihood - alone > _GAIN


def _apart(family: Family, parameters: Tensor) -> float:
    mean, variance = moments(family, parameters)
    return float((mean[1] - mean[0]) / variance.mean().sqrt().clamp(min=1e-12))


def _bootstrap_rate(fit: MixtureFit, samples: int = 100) -> tuple[float, float]:
    if len(fit.bins.counts) < 2:
        return (fit.mismatch_rate, fit.mismatch_rate)
    total = int(fit.bins.counts.sum())
    share = (fit.bins.counts / total).numpy()
    drawn = np.random.default_rng(0).multinomial(total, share / share.sum(), size=samples)
    start = torch.tensor(fit.weights, dtype=torch.float64).expand(samples, 2)
    parameters = torch.tensor(fit.parameters, dtype=torch.float64).expand(samples, 2, 2)
    counts = torch.from_numpy(drawn).double()
    # A component as narrow as allowed may not move; the weights always can.
    held = start
    for _ in range(60):
        claimed = torch.softmax(log_joint(fit.family, fit.bins, held, parameters), -2)
        held = (claimed * (counts / total).unsqueeze(-2)).sum(-1)
    weights, parameters, *_ = em(fit.family, fit.bins, counts, start, parameters, 1e-6, 60)
    weights = torch.where((weights == start).all(-1, keepdim=True), held, weights)
    upper = moments(fit.family, parameters)[0].argmax(-1, keepdim=True)
    low, high = np.quantile(weights.gather(-1, upper).numpy(), (0.025, 0.975))
    return min(float(low), fit.mismatch_rate), max(float(high), fit.mismatch_rate)
