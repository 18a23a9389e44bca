"""The two component families of a loss mixture, as exponential families: density = exp(natural · T(x) - normaliser).

Letters: parameters (..., 2) are (α, β) for Beta and (mean, standard deviation) for Gauss; T(x) has two entries,
(log x, log(1 - x)) for Beta and (x, x²) for Gauss; x is in [EDGE, 1 - EDGE].
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

Family = Literal["beta", "gaussian"]

EDGE = 1e-3  # normalised losses are kept this far from 0 and 1, when fitting and when judging alike
_MIN_VARIANCE = {"beta": 1e-4, "gaussian": 5e-4}  # a component never collapses on a repeated value


def statistics(family: Family, x: Tensor) -> Tensor:
    """The sufficient statistics of x (...,) in (0, 1): (log x, log(1 - x)) or (x, x²), (..., 2)."""
    return torch.stack([x.log(), torch.log1p(-x)] if family == "beta" else [x, x * x], -1)


def natural(family: Family, parameters: Tensor) -> Tensor:
    """Natural parameters that go with `statistics`, (..., 2) -> (..., 2)."""
    first, second = parameters.unbind(-1)
    if family == "beta":
        return torch.stack([first - 1, second - 1], -1)
    return torch.stack([first / second**2, -0.5 / second**2], -1)


def normaliser(family: Family, parameters: Tensor) -> Tensor:
    """The log normaliser of each component, (..., 2) -> (...,): log density = statistics · natural - normaliser."""
    first, second = parameters.unbind(-1)
    if family == "beta":
        return torch.lgamma(first) + torch.lgamma(second) - torch.lgamma(first + second)
    return first**2 / (2 * second**2) + second.log() + 0.5 * math.log(2 * math.pi)


def moments(family: Family, parameters: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of each component."""
    first, second = parameters.unbind(-1)
    if family == "gaussian":
        return first, second**2
    total = first + second
    return first / total, first * second / (total**2 * (total + 1))


def from_moments(family: Family, mean: Tensor, variance: Tensor) -> Tensor:
    """Parameters (..., 2) of the component with this mean and variance (...,), none narrower than allowed."""
    variance = variance.clamp(min=_MIN_VARIANCE[family])
    if family == "gaussian":
        return torch.stack([mean, variance.sqrt()], -1)
    mean = mean.clamp(EDGE, 1 - EDGE)
    total = (mean * (1 - mean) / variance - 1).clamp(min=0.05)
    return torch.stack([mean * total, (1 - mean) * total], -1)


def most_likely(family: Family, target: Tensor, parameters: Tensor) -> Tensor:
    """The parameters whose expected T is `target` (..., 2), started from `parameters`."""
    if family == "gaussian":
        return from_moments(family, target[..., 0], target[..., 1] - target[..., 0] ** 2)
    a, b = parameters.unbind(-1)
    for _ in range(2):  # Newton from the last round's values; EM comes back, so it need not be exact
        both = torch.digamma(a + b)
        miss_a, miss_b = target[..., 0] - torch.digamma(a) + both, target[..., 1] - torch.digamma(b) + both
        shared = torch.polygamma(1, a + b)
        curve_a, curve_b = torch.polygamma(1, a) - shared, torch.polygamma(1, b) - shared
        determinant = curve_a * curve_b - shared**2
        step_a = (curve_b * miss_a + shared * miss_b) / determinant
        step_b = (shared * miss_a + curve_a * miss_b) / determinant
        a, b = torch.maximum(a + step_a, a / 4), torch.maximum(b + step_b, b / 4)
    return widened(family, torch.stack([a, b], -1))


def widened(family: Family, parameters: Tensor) -> Tensor:
    """The same components, none narrower than allowed."""
    mean, variance = moments(family, parameters)
    collapsed = ~(variance >= _MIN_VARIANCE[family])  # also where Newton left the numbers
    return torch.where(collapsed.unsqueeze(-1), from_moments(family, mean.nan_to_num(0.5), variance * 0), parameters)


def monotone_part(family: Family, slope: Tensor, x: Tensor) -> Tensor:
    """x held at the turning point of the log ratio slope · T(x), on the side where the ratio would fall."""
    first, second = slope.tolist()
    if family == "beta":  # first / x = second / (1 - x); a turn exists if both have one sign
        if first * second <= 0:
            return x
        turn = first / (first + second)
        return x.clamp(max=turn) if first > 0 else x.clamp(min=turn)
    if second == 0:
        return x
    turn = -first / (2 * second)
    return x.clamp(max=turn) if second < 0 else x.clamp(min=turn)
