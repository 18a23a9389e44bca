"""Which action is recommended, and that nothing is said where nothing is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mispair.auditing.facts import RematchTrial
from mispair.auditing.fixing.actions import plan_fix
from mispair.auditing.fixing.expectation import Expectation, advise, advised_action, expect, recommended
from mispair.auditing.verdicts import Verdicts
from tests.report.samples import audit_of


def tried(true: float | None, conclusive: bool = True) -> Verdicts:
    verdicts = audit_of(400)
    trial = None if true is None else RematchTrial(50, 0.9, true, 0.1, 1.0, (0.2, 0.9), (true, true))
    return Verdicts(verdicts.table, replace(verdicts.facts, rematch=trial, conclusive=conclusive))


def test_dropping_by_hand() -> None:
    verdicts = tried(0.2)
    kept = ~verdicts.is_mismatch_issue
    expected = expect(verdicts, plan_fix(verdicts, "drop"))
    assert expected.wrong == pytest.approx(verdicts.p_mismatch[kept].mean())
    assert (expected.kept, expected.replaced, expected.true) == (kept.sum(), 0, None)


def test_rematching_by_hand() -> None:
    verdicts = tried(0.2)
    plan = plan_fix(verdicts, "rematch")
    expected = expect(verdicts, plan)
    replaced = plan.kept != plan.caption_of
    wrong = verdicts.p_mismatch[plan.kept[~replaced]].sum() + 0.8 * replaced.sum()
    assert expected.true == pytest.approx(0.2)
    assert expected.wrong == pytest.approx(wrong / len(plan.kept))


def test_the_better_action_is_recommended() -> None:
    assert advise(tried(0.2)).endswith("Recommended: --action drop.")
    assert advise(tried(1.0)).endswith("Recommended: --action rematch.")


def test_the_command_named_next_takes_the_action_that_was_recommended() -> None:
    assert [advised_action(tried(true)) for true in (0.2, 1.0, None)] == ["drop", "rematch", "drop"]
    assert advised_action(tried(1.0, conclusive=False)) is None
    verdicts = tried(1.0)
    assert advised_action(Verdicts(verdicts.table, replace(verdicts.facts, issues=0))) is None


def test_a_few_captions_that_do_not_fit_are_not_recommended_because_the_set_is_large() -> None:
    few = Expectation("rematch", 1493, 0.024, 5, 0.04)
    dropped = Expectation("drop", 1488, 0.021, 0, None)
    assert recommended(dropped, few) == "drop"
    assert recommended(dropped, replace(few, true=0.8)) == "rematch"


def test_advice_keeps_the_limits_of_the_fix_it_stands_beside() -> None:
    """Else it tells of more new captions, and of others, than the fix has just written."""
    verdicts = tried(0.9)
    least = float(np.nanmedian(verdicts.column("proposed_caption_weight")))
    limited = plan_fix(verdicts, "rematch", min_weight=least)
    expected = expect(verdicts, limited)
    assert 0 < expected.replaced < expect(verdicts, plan_fix(verdicts, "rematch")).replaced
    said = advise(verdicts, min_weight=least)
    assert (
        f"if they are rematched, {expected.wrong:.1%} (about 90% of the {expected.replaced:,} new captions fit)" in said
    )
    strict = advise(verdicts, threshold=0.9)
    assert f"dropped, {expect(verdicts, plan_fix(verdicts, 'drop', threshold=0.9)).wrong:.1%}" in strict


def test_nothing_is_said_where_nothing_is_known() -> None:
    assert "unknown" in advise(tried(None))
    assert advise(tried(None)).endswith("Recommended: --action drop.")
    assert expect(tried(None), plan_fix(tried(None), "rematch")).wrong is None
    assert "cannot be told" in advise(tried(0.5, conclusive=False))
    verdicts = tried(0.5)
    none = advise(Verdicts(verdicts.table, replace(verdicts.facts, issues=0)))
    assert none.startswith("No pair is judged mismatched, so there is none to drop or to rematch.")
    assert none.endswith(f"{verdicts.facts.rate:.1%} may be wrong all the same, but this model cannot say which.")
    for unknown in ({"conclusive": False}, {"learned": True}, {"data": {"mended": {"action": "drop"}}}):
        silent = advise(Verdicts(verdicts.table, replace(verdicts.facts, issues=0, **unknown)))
        assert silent == "No pair is judged mismatched, so there is none to drop or to rematch."
