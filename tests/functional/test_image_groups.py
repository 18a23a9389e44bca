"""Values seen together with those of their group."""

import numpy as np
import pytest

from mispair.errors import InputError
from mispair.functional.image_groups import group_correlation, group_means, shrink_to_groups


def test_means_by_hand():
    values, groups = np.array([1.0, 5.0, 3.0, 7.0]), np.array([9, 2, 9, 2])
    assert group_means(values, groups).tolist() == [2.0, 6.0, 2.0, 6.0]


def test_correlation_is_that_with_the_others_of_the_group():
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 29, 101)
    values = rng.normal(size=29)[groups] + rng.normal(size=101)
    own, others = [], []
    for i in range(101):
        rest = [values[j] for j in range(101) if groups[j] == groups[i] and j != i]
        if rest:
            own.append(values[i])
            others.append(np.mean(rest))
    assert group_correlation(values, groups) == pytest.approx(np.corrcoef(own, others)[0, 1])


def test_pairs_without_company_or_difference_have_nothing_to_share():
    assert group_correlation(np.arange(7.0), np.arange(7)) == 0
    assert group_correlation(np.ones(10), np.repeat(np.arange(5), 2)) == 0
    assert shrink_to_groups(np.arange(7.0), np.arange(7)).tolist() == list(range(7))


def test_groups_that_stand_together_clean_a_noisy_signal_and_others_leave_it_alone():
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(1009), 5)
    together, alone = np.repeat(rng.random(1009) < 0.4, 5), rng.random(5045) < 0.4
    noise = rng.normal(size=5045)

    def errors(signal, truth):
        return np.mean((signal > np.median(signal)) != truth)

    for truth, helps in ((together, True), (alone, False)):
        raw = 2.0 * truth + noise
        shrunk = shrink_to_groups(raw, groups)
        assert (errors(shrunk, truth) < 0.8 * errors(raw, truth)) == helps
        assert np.corrcoef(shrunk, raw)[0, 1] > (0.5 if helps else 0.999)


def test_shapes_must_agree():
    with pytest.raises(InputError, match=r"alike \(N,\)"):
        group_means(np.ones(3), np.zeros(4, np.int64))
