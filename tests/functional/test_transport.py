import math

import numpy as np
import ot
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mispair.functional.transport import partial_transport
from tests import oracles

DIAGONAL = torch.eye(13, dtype=torch.bool)


def problem(n, m, seed=0, scale=1.0):
    return torch.rand(n, m, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) * scale


def planted(n, matches, seed=0):
    """Scores of a batch in which `matches` images have a clear partner elsewhere in the batch."""
    rng = np.random.default_rng(seed)
    scores = rng.uniform(0, 0.3, (n, n))
    for k in range(matches):
        scores[k, (k + n // 3) % n] = 0.9
    return torch.from_numpy(1 - scores)


def test_two_by_two_by_hand():
    # Both diagonal cells cost nothing and 0.5 must move: by symmetry 0.25 each as the entropy vanishes.
    plan = partial_transport(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), 0.5, 0.01).plan
    assert torch.allclose(plan, torch.tensor([[0.25, 0.0], [0.0, 0.25]]), atol=1e-6)


@pytest.mark.parametrize("mass", [0.1, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("entropy", [0.01, 0.07, 1.0])
@pytest.mark.parametrize(("n", "m"), [(13, 13), (7, 11), (11, 7), (1, 5), (5, 1)])
def test_extended_equals_the_slow_reference(n, m, entropy, mass):
    cost = problem(n, m, seed=n * m)
    forbidden = DIAGONAL.numpy() if n == m else np.zeros((n, m), bool)
    alignment = partial_transport(cost, mass, entropy, torch.from_numpy(forbidden), tol=1e-9, max_iter=20_000)
    truth = oracles.sinkhorn_log(cost.numpy(), mass, entropy, forbidden)
    assert alignment.converged
    assert np.abs(alignment.plan.numpy() - truth).sum() < 1e-6 * mass
    assert alignment.mass == pytest.approx(mass, rel=1e-8)


@pytest.mark.parametrize("entropy", [0.05, 0.3])
def test_extended_equals_pot_on_the_extended_problem(entropy):
    cost = problem(11, 13).numpy()
    extended, p, q = oracles.extend(
        cost, 0.3, np.zeros((11, 13), bool), np.full(11, 1 / 11), np.full(13, 1 / 13), 0.0, 1e3
    )
    truth = ot.sinkhorn(p, q, extended, entropy, method="sinkhorn_log", numItermax=50_000, stopThr=1e-13)
    plan = partial_transport(torch.from_numpy(cost), 0.3, entropy, tol=1e-10).plan
    assert np.abs(plan.numpy() - truth[:11, :13]).max() < 1e-9


@pytest.mark.parametrize("mass", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("entropy", [0.02, 0.2])
def test_plan_entropy_equals_pot(entropy, mass):
    cost = problem(11, 17, seed=3)
    truth = ot.partial.entropic_partial_wasserstein_logscale(
        np.full(11, 1 / 11), np.full(17, 1 / 17), cost.numpy(), entropy, m=mass, numItermax=4000, stopThr=1e-300
    )
    alignment = partial_transport(cost, mass, entropy, entropy_on="plan", tol=1e-10, max_iter=20_000)
    assert alignment.converged
    assert np.abs(alignment.plan.numpy() - truth).sum() < 1e-8


def test_the_two_entropies_have_visibly_different_optima():
    cost = planted(61, 7)
    extended = partial_transport(cost, 0.1, 0.07).plan
    plan = partial_transport(cost, 0.1, 0.07, entropy_on="plan").plan
    assert (extended - plan).abs().sum() > 0.1 * 0.1  # more than a tenth of the mass lies elsewhere


@pytest.mark.parametrize("entropy_on", ["extended", "plan"])
@pytest.mark.parametrize("mass", [0.2, 0.6])
def test_cost_approaches_exact_transport_as_entropy_vanishes(entropy_on, mass):
    cost = problem(11, 7, seed=5)
    p, q = np.full(11, 1 / 11), np.full(7, 1 / 7)
    exact = float((ot.partial.partial_wasserstein(p, q, cost.numpy(), m=mass) * cost.numpy()).sum())
    costs = [
        float((partial_transport(cost, mass, e, entropy_on=entropy_on, max_iter=20_000).plan * cost).sum())
        for e in (0.1, 0.01, 0.002)
    ]
    assert costs[0] > costs[1] > costs[2] > exact - 1e-6
    assert costs[2] == pytest.approx(exact, abs=2e-3)


def test_cost_approaches_the_linear_program_with_forbidden_cells():
    cost = problem(13, 13, seed=8)
    p = np.full(13, 1 / 13)
    exact = oracles.exact_partial_transport(cost.numpy(), 0.4, DIAGONAL.numpy(), p, p)
    for entropy, distance in ((0.05, 3e-2), (0.01, 3e-3)):
        plan = partial_transport(cost, 0.4, entropy, DIAGONAL).plan
        assert exact < float((plan * cost).sum()) < exact + distance


@given(
    n=st.sampled_from([2, 3, 5, 7, 17]),
    m=st.sampled_from([2, 3, 5, 11, 19]),
    mass=st.floats(0.02, 1.0),
    entropy=st.floats(0.005, 2.0),
    seed=st.integers(0, 10_000),
    entropy_on=st.sampled_from(["extended", "plan"]),
    barred=st.floats(0, 0.3),
)
@pytest.mark.filterwarnings("ignore:partial transport stopped")
def test_constraints_hold_whatever_is_asked(n, m, mass, entropy, seed, entropy_on, barred):
    rng = np.random.default_rng(seed)
    cost = torch.from_numpy(rng.uniform(0, 3, (n, m)))
    forbidden = rng.random((n, m)) < barred
    forbidden[0] = forbidden[:, 0] = False  # room for any mass, so that the problem is feasible
    p, q = rng.dirichlet(np.ones(n)) + 0.01, rng.dirichlet(np.ones(m)) + 0.01
    mass = mass * min(p[0], q[0], p.sum(), q.sum())  # what the open row and column can always hold
    rows, cols = torch.from_numpy(p), torch.from_numpy(q)
    alignment = partial_transport(cost, mass, entropy, torch.from_numpy(forbidden), rows, cols, entropy_on=entropy_on)
    plan = alignment.plan
    assert torch.isfinite(plan).all()
    assert (plan >= 0).all()
    assert (plan[torch.from_numpy(forbidden)] == 0).all()
    assert (plan.sum(1) <= rows * (1 + 1e-6)).all()
    assert (plan.sum(0) <= cols * (1 + 1e-6)).all()
    assert alignment.mass == pytest.approx(float(plan.sum()), rel=1e-9)
    if alignment.converged:
        assert alignment.mass == pytest.approx(mass, rel=1e-5)


@given(seed=st.integers(0, 1000))
def test_permuting_the_batch_permutes_the_plan(seed):
    generator = torch.Generator().manual_seed(seed)
    cost = torch.rand(13, 13, dtype=torch.float64, generator=generator)
    rows, cols = torch.randperm(13, generator=generator), torch.randperm(13, generator=generator)
    plan = partial_transport(cost, 0.3, 0.05, DIAGONAL, tol=1e-9).plan
    shuffled = partial_transport(cost[rows][:, cols], 0.3, 0.05, DIAGONAL[rows][:, cols], tol=1e-9).plan
    assert torch.allclose(plan[rows][:, cols], shuffled, atol=1e-9)


def test_a_constant_added_to_the_cost_changes_nothing():
    cost = problem(13, 13)
    plan = partial_transport(cost, 0.3, 0.05, DIAGONAL, tol=1e-9).plan
    assert torch.allclose(plan, partial_transport(cost + 7, 0.3, 0.05, DIAGONAL, tol=1e-9).plan, atol=1e-9)


@pytest.mark.parametrize("entropy_on", ["extended", "plan"])
@pytest.mark.filterwarnings("ignore:partial transport stopped")
def test_finite_at_small_entropy_and_large_cost(entropy_on):
    for mass in (0.1, 0.9, 1.0):
        for dtype in (torch.float32, torch.float64):
            cost = problem(37, 41, scale=10.0).to(dtype)
            alignment = partial_transport(cost, mass, 1e-3, entropy_on=entropy_on)
            assert torch.isfinite(alignment.plan).all()
            assert alignment.plan.dtype == dtype
            assert alignment.plan.sum(1).max() <= 1 / 37 * (1 + 1e-6)


def test_batched_equals_one_by_one():
    cost = torch.stack([problem(13, 11, seed=s) for s in range(6)]).reshape(2, 3, 13, 11)
    forbidden = torch.zeros(13, 11, dtype=torch.bool)
    forbidden[3, 4] = True
    together = partial_transport(cost, 0.4, 0.03, forbidden)
    assert together.plan.shape == cost.shape
    assert together.mass.shape == (2, 3)
    assert together.converged.all()
    for i in range(2):
        for j in range(3):
            alone = partial_transport(cost[i, j], 0.4, 0.03, forbidden)
            assert torch.allclose(alone.plan, together.plan[i, j], atol=1e-12)
            assert alone.iterations == int(together.iterations[i, j])


def test_an_easy_problem_stands_still_while_a_hard_one_goes_on():
    cost = torch.stack([problem(37, 37), problem(37, 37, seed=1, scale=9)])
    together = partial_transport(cost, 0.3, 0.02, tol=1e-2)  # loose: a further block would be seen
    assert together.iterations[0] < together.iterations[1]
    for one, plan in zip(cost, together.plan, strict=True):
        assert torch.allclose(partial_transport(one, 0.3, 0.02, tol=1e-2).plan, plan, atol=1e-12, rtol=1e-9)


def test_single_results_are_plain_numbers():
    alignment = partial_transport(problem(5, 7), 0.2, 0.1)
    assert type(alignment.mass) is float
    assert type(alignment.converged) is bool
    assert type(alignment.iterations) is int


def test_no_gradient_flows_and_inputs_stay_as_they_are():
    cost = problem(5, 7).requires_grad_()
    before = cost.detach().clone()
    assert not partial_transport(cost, 0.2, 0.1).plan.requires_grad
    assert torch.equal(cost.detach(), before)


def test_empty_rows_carry_nothing():
    rows = torch.tensor([0.5, 0.0, 0.5], dtype=torch.float64)
    for entropy_on in ("extended", "plan"):
        plan = partial_transport(problem(3, 5), 0.4, 0.05, rows=rows, entropy_on=entropy_on).plan
        assert plan[1].sum() < 1e-12
        assert plan.sum() == pytest.approx(0.4, rel=1e-6)


@pytest.mark.parametrize("entropy", [0.01, 0.07])
@pytest.mark.parametrize("kind", ["planted", "early", "random"])
def test_published_stop_is_reproduced_and_over_transports(kind, entropy):
    rng = np.random.default_rng(1)
    n = 128
    cost = {
        "planted": planted(n, 15, seed=1).numpy(),
        "early": 0.5 + 0.01 * rng.standard_normal((n, n)),
        "random": rng.uniform(0, 1, (n, n)),
    }[kind]
    truth, iterations = oracles.released_sinkhorn(cost, 0.1, entropy, np.eye(n, dtype=bool))
    alignment = partial_transport(
        torch.from_numpy(cost), 0.1, entropy, torch.eye(n, dtype=torch.bool), stop="potentials"
    )
    assert alignment.iterations == iterations
    assert np.abs(alignment.plan.numpy() - truth).sum() < 1e-6
    assert 0.1 <= alignment.mass <= 0.116
    assert float(alignment.plan.diagonal().sum()) == 0


def test_published_stop_moves_percent_too_much_where_marginals_do_not():
    cost = planted(128, 15, seed=1)
    mask = torch.eye(128, dtype=torch.bool)
    published = partial_transport(cost, 0.1, 0.01, mask, stop="potentials")
    ours = partial_transport(cost, 0.1, 0.01, mask)
    assert published.mass > 0.1 * 1.01
    assert ours.mass == pytest.approx(0.1, rel=1e-6)


def test_not_converged_is_said():
    with pytest.warns(UserWarning, match="raise max_iter or entropy"):
        alignment = partial_transport(problem(37, 37, scale=10), 0.99, 1e-3, max_iter=5)
    assert not alignment.converged
    assert alignment.iterations == 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mass": 0.0}, r"mass must be in \(0, 1\].*got 0.0"),
        ({"mass": 1.4}, r"mass must be in \(0, 1\].*got 1.4"),
        ({"mass": math.nan}, "mass must be in"),
        ({"entropy": 0.0}, "entropy must be a positive number, got 0.0"),
        ({"entropy": math.inf}, "entropy must be a positive number"),
        ({"cost": torch.full((5, 5), math.nan)}, "cost must be finite"),
        ({"cost": torch.full((5, 5), math.inf)}, "cost must be finite"),
        ({"cost": torch.ones(5, 5, dtype=torch.int64)}, "floating"),
        ({"cost": torch.ones(5)}, r"\(\.\.\., n, m\)"),
        ({"cost": torch.ones(0, 5)}, "at least one row"),
        ({"rows": torch.tensor([-0.1, 0.3, 0.3, 0.3, 0.2])}, "rows must be finite and not negative.*-0.1"),
        ({"rows": torch.ones(4)}, r"rows must have shape \(5,\)"),
        ({"cols": torch.ones(2, 5)}, r"cols must have shape \(5,\)"),
        ({"forbidden": torch.zeros(5, 5)}, "forbidden must be a bool tensor"),
        ({"forbidden": torch.zeros(4, 5, dtype=torch.bool)}, r"of shape \(5, 5\)"),
        ({"tol": 0.0}, "tol and max_iter must be positive"),
        ({"stop": "never"}, "stop must be one of marginals, potentials, got 'never'"),
        ({"entropy_on": "slack"}, "entropy_on must be one of extended, plan"),
        ({"entropy_on": "plan", "stop": "potentials"}, "published rule"),
    ],
)
def test_bad_input_gets_one_sentence(change, message):
    arguments = {"cost": torch.rand(5, 5), "mass": 0.5, "entropy": 0.1} | change
    with pytest.raises(ValueError, match=message):
        partial_transport(**arguments)


def test_a_forbidden_row_is_refused_under_full_mass_only():
    forbidden = torch.zeros(5, 5, dtype=torch.bool)
    forbidden[2] = True
    with pytest.raises(ValueError, match="every cell of some row is forbidden.*hold only 0.8"):
        partial_transport(torch.rand(5, 5), 1.0, 0.1, forbidden)
    with pytest.raises(ValueError, match="every cell of some column is forbidden"):
        partial_transport(torch.rand(5, 5), 1.0, 0.1, forbidden.T)
    plan = partial_transport(torch.rand(5, 5), 0.5, 0.1, forbidden).plan
    assert plan[2].sum() == 0


def test_infinite_cost_is_fine_where_it_is_forbidden():
    cost = torch.rand(5, 5)
    cost.fill_diagonal_(math.inf)
    assert partial_transport(cost, 0.5, 0.1, torch.eye(5, dtype=torch.bool)).converged


def test_nothing_moves_where_everything_is_forbidden() -> None:
    """A training step does not look first: it gets an empty plan, not one of NaN."""
    everything, given = torch.ones(3, 3, dtype=torch.bool), torch.eye(3, dtype=torch.bool)
    cost = torch.rand(2, 3, 3, generator=torch.Generator().manual_seed(0))
    found = partial_transport(cost, 0.2, 0.05, torch.stack([everything, given]), validate=False)
    assert found.plan[0].tolist() == [[0.0] * 3] * 3
    assert found.plan[1].sum().item() == pytest.approx(0.2)
