"""Kappa against scikit-learn, disagreements, majorities and what controls say of a reviewer."""

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from mispair.reviewing.agreement import agreements, cohens_kappa, disagreements, majority, reviewer_figures
from mispair.reviewing.decisions import Decision


def said(*answers):
    return [
        Decision(number=k + 1, pair=pair, answer=answer, reviewer=who, time="", control=control, seconds=seconds)
        for k, (who, pair, answer, control, seconds) in enumerate(answers)
    ]


def plain(*answers):
    return said(*((who, pair, answer, None, None) for who, pair, answer in answers))


def test_kappa_equals_the_librarys():
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b = rng.random(40) < 0.4, rng.random(40) < 0.5
        expected = cohen_kappa_score(a, b)
        assert cohens_kappa(list(zip(a.tolist(), b.tolist(), strict=True))) == pytest.approx(expected)


def test_kappa_where_chance_explains_everything():
    assert cohens_kappa([(True, True)] * 5) is None


def test_agreement_counts_pairs_both_answered():
    decisions = plain(
        ("ann", 1, "right"), ("bob", 1, "right"), ("ann", 2, "wrong"), ("bob", 2, "proposal"),
        ("ann", 3, "right"), ("bob", 3, "wrong"), ("ann", 4, "skip"), ("bob", 4, "wrong"), ("ann", 5, "wrong"),
    )  # fmt: skip
    (row,) = agreements(decisions)
    assert (row.reviewers, row.pairs, row.share) == (("ann", "bob"), 3, pytest.approx(2 / 3))
    assert disagreements(decisions) == [3]


def test_a_third_opinion_settles_it():
    decisions = plain(("ann", 3, "right"), ("bob", 3, "wrong"), ("carl", 3, "wrong"))
    assert disagreements(decisions) == []
    assert majority(decisions) == {3: True}


def test_even_votes_follow_the_last_word():
    assert majority(plain(("ann", 3, "right"), ("bob", 3, "wrong"))) == {3: True}
    assert majority(plain(("bob", 3, "wrong"), ("ann", 3, "right"))) == {3: False}


def test_errors_on_controls():
    decisions = said(
        ("ann", 1, "wrong", "re-paired", 1.0), ("ann", 2, "right", "re-paired", 2.0), ("ann", 3, "right", "sure", 9.0),
        ("ann", 4, "skip", None, 3.0), ("bob", 1, "right", None, None),
    )  # fmt: skip
    ann, bob = reviewer_figures(decisions)
    assert (ann.controls, ann.control_errors, ann.skipped, ann.seconds) == (3, 1, 1, 3.0)
    assert ann.error_rate == pytest.approx(1 / 3)
    assert bob.error_rate is None
