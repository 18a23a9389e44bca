import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.mixture import GaussianMixture

from mispair.functional.mixture import decide_mismatched, fit_beta_mixture, fit_gaussian_mixture, fit_mixture
from tests import oracles

FITS = [fit_beta_mixture, fit_gaussian_mixture]


def planted(rate, n=20_011, seed=0, clean=(2, 12), noisy=(9, 5)):
    rng = np.random.default_rng(seed)
    wrong = rng.random(n) < rate
    return np.where(wrong, rng.beta(*noisy, n), rng.beta(*clean, n)), wrong


def clipped(losses):
    low, high = losses.min(), losses.max()
    return np.clip((losses - low) / (high - low), 1e-3, 1 - 1e-3)


@pytest.mark.parametrize("rate", [0.2, 0.4, 0.6, 0.8])
def test_planted_mixture_is_split(rate):
    losses, wrong = planted(rate)
    fit = fit_beta_mixture(losses)
    assert fit.converged
    assert fit.bimodal
    assert ((fit.posterior_mismatched(losses) > 0.5) == wrong).mean() >= 0.95
    assert fit.mismatch_rate == pytest.approx(rate, abs=0.02)
    low, high = fit.mismatch_rate_ci
    assert low < fit.mismatch_rate < high
    assert high - low < 0.05
    assert fit.means[0] < fit.threshold < fit.means[1]


@pytest.mark.parametrize("rate", [0.2, 0.5, 0.8])
def test_histogram_em_agrees_with_exact_em(rate):
    losses, _ = planted(rate, n=5003)
    fit = fit_beta_mixture(losses, tol=1e-10, max_iter=2000)
    x = clipped(losses)
    weights, parameters, trace = oracles.beta_em(x, fit.weights, fit.parameters, iterations=300, tol=1e-12)
    assert trace[0] == pytest.approx(fit.log_likelihood, abs=1e-4)  # the bins lose next to nothing
    assert trace[-1] - trace[0] < 1e-4  # and exact EM finds nothing better nearby
    exact = [math.log(w) + oracles.beta_log_density(x, *p) for w, p in zip(weights, parameters, strict=True)]
    assert ((exact[1] > exact[0]) == (fit.posterior_mismatched(losses) > 0.5)).mean() >= 0.999


def test_gaussian_agrees_with_scikit_learn():
    losses, _ = planted(0.4, n=5003)
    fit = fit_gaussian_mixture(losses, tol=1e-10, max_iter=2000)
    x = clipped(losses)[:, None]
    truth = GaussianMixture(2, random_state=0, tol=1e-9, max_iter=2000, reg_covar=1e-9).fit(x)
    order = truth.means_[:, 0].argsort()
    assert np.allclose(fit.weights, truth.weights_[order], atol=2e-3)
    assert np.allclose([p[0] for p in fit.parameters], truth.means_[order, 0], atol=2e-3)
    assert fit.log_likelihood == pytest.approx(truth.score(x), abs=1e-3)


@given(seed=st.integers(0, 10_000), rate=st.floats(0.05, 0.95), family=st.sampled_from(["beta", "gaussian"]))
def test_likelihood_never_falls(seed, rate, family):
    losses, _ = planted(rate, n=997, seed=seed)
    fit = fit_beta_mixture if family == "beta" else fit_gaussian_mixture
    trace = [fit(losses, tol=1e-12, max_iter=k).log_likelihood for k in (1, 2, 3, 5, 9, 17, 33)]
    # The best start may change within the first ten rounds, but only to a better one.
    assert all(later >= earlier - 1e-12 for earlier, later in itertools.pairwise(trace))


@given(
    seed=st.integers(0, 10_000),
    clean=st.tuples(st.floats(0.4, 30), st.floats(0.4, 30)),
    noisy=st.tuples(st.floats(0.4, 30), st.floats(0.4, 30)),
    rate=st.floats(0.02, 0.98),
    family=st.sampled_from(["beta", "gaussian"]),
)
def test_posterior_is_monotone_and_never_nan(seed, clean, noisy, rate, family):
    losses, _ = planted(rate, n=499, seed=seed, clean=clean, noisy=noisy)
    fit = (fit_beta_mixture if family == "beta" else fit_gaussian_mixture)(losses)
    inside = np.linspace(losses.min() - 1, losses.max() + 1, 2003)
    posterior = fit.posterior_mismatched(inside)
    assert np.isfinite(posterior).all()
    assert (np.diff(posterior) >= -1e-12).all()
    assert posterior.min() >= 0
    assert posterior.max() <= 1
    assert fit.means[0] <= fit.means[1]
    if math.isfinite(fit.threshold):
        judged = fit.posterior_mismatched(np.array([fit.threshold - 1e-6, fit.threshold + 1e-6]))
        assert judged[0] <= 0.5 + 1e-3
        assert judged[1] >= 0.5 - 1e-3


def test_the_far_tail_does_not_flip():
    # A broad clean component and a narrow noisy one: without care, the largest losses belong to the broad one.
    rng = np.random.default_rng(0)
    losses = np.concatenate([rng.normal(0.2, 0.12, 4000), rng.normal(0.75, 0.03, 2000)])
    fit = fit_gaussian_mixture(losses)
    natural = [
        w * math.exp(-((1.2 - m) ** 2) / (2 * s * s)) / s for w, (m, s) in zip(fit.weights, fit.parameters, strict=True)
    ]
    assert natural[0] > natural[1]  # the plain posterior would call a huge loss matched
    assert fit.posterior_mismatched(np.array([losses.max() + 0.5]))[0] > 0.9


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize(
    "losses",
    [
        np.zeros(50),
        np.full(7, 3.25),
        np.array([0.0, 1.0]),
        np.array([2.0, 2.0]),
        np.r_[np.zeros(99), 1.0],
        np.r_[np.zeros(500), np.ones(500)],
        np.r_[np.zeros(300), np.random.default_rng(0).random(700), np.ones(3)],
        np.linspace(-5, 5, 1009),
        np.random.default_rng(1).normal(1e9, 1.0, 997),
        np.random.default_rng(1).normal(0, 1e-12, 997),
    ],
    ids=["zeros", "constant", "two", "two-equal", "one-outlier", "two-values", "edges", "uniform", "huge", "tiny"],
)
def test_odd_losses_never_give_nan(fit, losses):
    result = fit(losses)
    values = [*result.weights, *result.parameters[0], *result.parameters[1], result.log_likelihood, *result.means]
    assert np.isfinite(values).all()
    assert np.isfinite(result.posterior_mismatched(losses)).all()
    assert np.isfinite(result.mismatch_rate_ci).all()
    assert not math.isnan(result.threshold)
    assert sum(result.weights) == pytest.approx(1)


def test_constant_losses_mean_nobody_is_mismatched():
    fit = fit_beta_mixture(np.full(128, 0.4))
    assert not fit.bimodal
    assert fit.mismatch_rate == 0
    assert fit.posterior_mismatched(np.full(128, 0.4)).max() == 0
    assert fit.threshold == math.inf


@pytest.mark.parametrize("fit", FITS)
def test_one_group_is_recognised(fit):
    rng = np.random.default_rng(3)
    for losses in (
        rng.beta(2, 12, 5003),
        rng.beta(9, 5, 5003),
        rng.beta(5, 5, 5003),
        rng.random(5003),
        rng.normal(0, 1, 5003),
        rng.exponential(1, 5003),
        rng.lognormal(0, 0.6, 5003),
    ):
        assert not fit(losses).bimodal


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("rate", [0.2, 0.4, 0.6, 0.8])
def test_two_groups_are_recognised_by_both_families(fit, rate):
    assert fit(planted(rate)[0]).bimodal
    # As a trained network leaves them: matched pairs near zero, mismatched ones broad.
    assert fit(planted(rate, clean=(0.6, 75), noisy=(2, 4))[0]).bimodal


@pytest.mark.parametrize("seed", [3, 4])
def test_gauss_components_of_one_skewed_group_are_not_apart(seed):
    rng = np.random.default_rng(seed)
    for losses in (
        rng.exponential(1, 5003),
        rng.gamma(0.3, 1, 5003),
        rng.beta(0.1, 2, 5003),
        rng.lognormal(0, 1, 5003),
    ):
        fit = fit_gaussian_mixture(losses)
        assert 1 < fit.apart < 2
        assert fit.mismatch_rate > 0.05  # so the weight alone would accuse them
    for rate in (0.1, 0.3, 0.8):
        assert fit_gaussian_mixture(planted(rate, clean=(0.6, 75), noisy=(2, 4), seed=seed)[0]).apart > 2


def test_decisions_when_there_is_one_group():
    losses = np.random.default_rng(3).beta(2, 12, 5003)
    fit = fit_beta_mixture(losses)
    assert not decide_mismatched(fit, losses, when_unimodal="none").any()
    worst = decide_mismatched(fit, losses, when_unimodal="top_percent")
    assert worst.sum() == 50
    assert losses[worst].min() >= losses[~worst].max()
    assert (decide_mismatched(fit, losses) == (fit.posterior_mismatched(losses) > 0.5)).all()
    with pytest.raises(
        ValueError, match="when_unimodal must be one of posterior, none, none_if_tail, top_percent, got 'all'"
    ):
        decide_mismatched(fit, losses, when_unimodal="all")
    with pytest.raises(ValueError, match="threshold must be between 0 and 1, got 1"):
        decide_mismatched(fit, losses, threshold=1)


def test_decisions_follow_the_posterior_when_there_are_two_groups():
    losses, wrong = planted(0.3)
    decision = decide_mismatched(fit_beta_mixture(losses), losses, when_unimodal="top_percent")
    assert (decision == wrong).mean() > 0.95


def test_a_family_is_chosen_by_its_name():
    losses, _ = planted(0.3, n=503)
    assert fit_mixture(losses, "beta") == fit_beta_mixture(losses)
    assert fit_mixture(losses, "gaussian") == fit_gaussian_mixture(losses)
    with pytest.raises(ValueError, match="family must be one of beta, gaussian, got 'gamma'"):
        fit_mixture(losses, "gamma")


def test_scale_and_shift_do_not_matter():
    losses, _ = planted(0.4, n=2003)
    fit, moved = fit_beta_mixture(losses), fit_beta_mixture(100 * losses - 7)
    assert np.allclose(fit.posterior_mismatched(losses), moved.posterior_mismatched(100 * losses - 7), atol=1e-6)
    assert moved.threshold == pytest.approx(100 * fit.threshold - 7, abs=1e-3)


def test_tensor_in_tensor_out():
    losses, _ = planted(0.4, n=503)
    values = torch.from_numpy(losses).float()
    posterior = fit_beta_mixture(values).posterior_mismatched(values)
    assert isinstance(posterior, torch.Tensor)
    assert posterior.dtype == torch.float32


def test_interval_covers_the_rate_it_estimates():
    hits = 0
    for seed in range(20):
        losses, wrong = planted(0.3, n=1009, seed=seed)
        low, high = fit_beta_mixture(losses).mismatch_rate_ci
        hits += low - 0.01 <= wrong.mean() <= high + 0.01
    assert hits >= 17


def test_cost_does_not_grow_with_the_number_of_losses():
    losses, _ = planted(0.4, n=300_007)
    assert len(fit_beta_mixture(losses).bins.counts) <= 1024
    assert len(fit_beta_mixture(losses, bins=64).bins.counts) <= 64


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize(
    ("losses", "message"),
    [
        (np.r_[np.random.default_rng(0).random(90), np.full(10, np.inf)], "10 of 100 are NaN or infinite.*pair 90"),
        (np.array([0.0, math.nan, 1.0]), "1 of 3 are NaN or infinite"),
        (np.zeros((4, 2)), r"shape \(N,\), got shape \(4, 2\)"),
        (np.array([1.0]), "at least two pairs, got 1"),
        (np.array([]), "at least two pairs, got 0"),
    ],
)
def test_bad_losses_get_one_sentence(fit, losses, message):
    with pytest.raises(ValueError, match=message):
        fit(losses)


def test_bad_options_get_one_sentence():
    with pytest.raises(ValueError, match="bins >= 16.*got 4"):
        fit_beta_mixture(np.random.default_rng(0).random(100), bins=4)


@pytest.mark.parametrize("fit", [fit_beta_mixture, fit_gaussian_mixture])
def test_a_spike_of_matched_pairs_does_not_stop_the_fit(fit):
    """Losses near zero are narrower than a component may be: jumps must not go where steps cannot follow."""
    rng = np.random.default_rng(0)
    losses = np.concatenate([np.abs(rng.normal(0, 0.004, 2003)), rng.normal(0.4, 0.15, 8009).clip(0.02)])
    found = fit(losses)
    low, high = found.mismatch_rate_ci
    assert found.mismatch_rate == pytest.approx(0.8, abs=0.03)
    assert 0.004 < high - low < 0.05
