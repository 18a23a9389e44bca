"""Mixtures at their ends: no threshold, two values, a narrow upper component, and where a fit starts."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from mispair.functional.mixture import fit_beta_mixture, fit_gaussian_mixture
from mispair.functional.mixture_em import histogram, starts
from mispair.functional.mixture_families import from_moments, moments, most_likely, natural, normaliser, statistics


@pytest.mark.parametrize(("upper", "threshold"), [(0.7, -math.inf), (0.5, -math.inf), (0.3, math.inf)])
def test_where_both_components_are_one_no_loss_is_a_threshold(upper, threshold):
    """The posterior is then the weight, everywhere."""
    fit = fit_beta_mixture(np.random.default_rng(0).beta(2, 5, 499))
    same = replace(fit, weights=(1 - upper, upper), parameters=(fit.parameters[0], fit.parameters[0]))
    assert same.posterior_mismatched(np.linspace(0, 1, 7)) == pytest.approx([upper] * 7)
    assert same.threshold == threshold


@pytest.mark.parametrize("fit", [fit_beta_mixture, fit_gaussian_mixture])
def test_two_values_half_each_vary_like_a_coin(fit):
    low, high = fit(np.r_[np.zeros(500), np.ones(500)]).mismatch_rate_ci
    assert high - low == pytest.approx(2 * 1.96 * math.sqrt(0.25 / 1000), rel=0.3)
    assert (low + high) / 2 == pytest.approx(0.5, abs=0.01)


def test_the_interval_is_that_of_the_upper_component_also_where_it_is_the_narrow_one():
    rng = np.random.default_rng(0)
    fit = fit_gaussian_mixture(np.concatenate([rng.normal(0.2, 0.12, 4000), rng.normal(0.75, 0.03, 2000)]))
    low, high = fit.mismatch_rate_ci
    assert low < 1 / 3 < high
    assert high - low < 0.05


def test_a_fit_starts_from_the_two_halves_of_every_cut():
    """Four losses, three cuts between them, the moments of both sides by hand."""
    losses = torch.tensor([0.1, 0.3, 0.6, 0.9], dtype=torch.float64)
    weights, parameters = starts("gaussian", histogram("gaussian", losses, 64))
    assert weights.tolist() == [[0.25, 0.75], [0.5, 0.5], [0.75, 0.25]]
    for cut, found in enumerate(parameters, 1):
        for side, (mean, deviation) in zip((losses[:cut], losses[cut:]), found.tolist(), strict=True):
            assert mean == pytest.approx(float(side.mean()))
            # a single loss has no width: the narrowest that is allowed
            assert deviation == pytest.approx(max(float(side.std(correction=0)), math.sqrt(5e-4)))


@pytest.mark.parametrize(("a", "b"), [(2.0, 5.0), (0.6, 30.0), (9.0, 1.5)])
def test_the_beta_family_is_that_of_torch(a, b):
    truth = torch.distributions.Beta(torch.tensor(a, dtype=torch.float64), torch.tensor(b, dtype=torch.float64))
    parameters = torch.tensor([a, b], dtype=torch.float64)
    x = torch.tensor([0.01, 0.2, 0.7], dtype=torch.float64)
    density = statistics("beta", x) @ natural("beta", parameters) - normaliser("beta", parameters)
    assert torch.allclose(density, truth.log_prob(x))
    mean, variance = moments("beta", parameters)
    assert torch.allclose(torch.stack([mean, variance]), torch.stack([truth.mean, truth.variance]))
    assert torch.allclose(from_moments("beta", mean, variance), parameters)
    expected = torch.stack([torch.digamma(p) - torch.digamma(parameters.sum()) for p in parameters])  # of T(x)
    near = most_likely("beta", expected, parameters * 1.1)
    assert torch.allclose(near, parameters, rtol=1e-3), "two Newton steps from a tenth away"
