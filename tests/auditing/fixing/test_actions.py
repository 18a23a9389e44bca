"""What an action makes of the pairs, by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from mispair.auditing.damage import find_empty_captions
from mispair.auditing.facts import Facts
from mispair.auditing.fixing.actions import plan_fix
from mispair.auditing.verdict_table import SCHEMA
from mispair.auditing.verdicts import Verdicts
from mispair.errors import InputError

P = [0.1, 0.9, 0.8, 0.6, 0.2]
PROPOSED = [None, 2, 1, 0, None]
WEIGHT = [None, 0.9, 0.5, 0.3, None]
GAIN = [None, 0.1, 0.4, 0.2, None]


@pytest.fixture
def verdicts() -> Verdicts:
    count = len(P)
    columns: dict[str, object] = {}
    for field in SCHEMA:
        columns[field.name] = [None] * count if field.nullable else pa.array([1] * count).cast(field.type)
    columns |= {
        "pair": range(count),
        "p_mismatch": P,
        "proposed_caption_pair": PROPOSED,
        "swap_with": [None, 2, 1, None, None],
    }
    columns |= {"proposed_caption_weight": WEIGHT, "proposed_caption_gain": GAIN}
    facts = Facts(count, 0.5, 0.4, 0.6, True, 0.9, 3, "by hand", False, None, {}, {})
    return Verdicts(pa.table(columns, schema=SCHEMA), facts)


def test_captions_that_say_nothing_are_left_out_as_the_audit_promises(verdicts: Verdicts) -> None:
    column = verdicts.table.schema.get_field_index("caption")
    table = verdicts.table.set_column(column, SCHEMA.field("caption"), pa.array(["", "a dog", "", "a cat", "a tree"]))
    found = find_empty_captions(table["caption"].to_pylist())
    assert found is not None
    assert "leaves them out" in found.remedy
    empty = Verdicts(table, replace(verdicts.facts, damage=(found,)))
    assert plan_fix(empty, "drop").kept.tolist() == [4]
    assert plan_fix(empty, "rematch").kept.tolist() == [1, 2, 3, 4]
    assert plan_fix(empty, "weight").kept.tolist() == [0, 1, 2, 3, 4]
    assert plan_fix(Verdicts(table, verdicts.facts), "drop").kept.tolist() == [0, 4], "vectors come without captions"


@pytest.mark.parametrize(
    ("action", "limits", "kept", "shown"),
    [
        ("drop", {}, [0, 4], [0, 4]),
        ("drop", {"threshold": 0.7}, [0, 3, 4], [0, 3, 4]),
        ("drop", {"threshold": 0.15}, [0], [0]),
        ("rematch", {}, [0, 1, 2, 3, 4], [0, 2, 1, 0, 4]),
        ("rematch", {"min_weight": 0.5}, [0, 1, 2, 4], [0, 2, 1, 4]),
        ("rematch", {"min_gain": 0.2}, [0, 2, 3, 4], [0, 1, 0, 4]),
        ("rematch", {"threshold": 0.7}, [0, 1, 2, 3, 4], [0, 2, 1, 3, 4]),
        ("swap", {}, [0, 1, 2, 3, 4], [0, 2, 1, 3, 4]),
        ("swap", {"min_weight": 0.6}, [0, 1, 2, 3, 4], [0, 2, 1, 3, 4]),  # one of the two proposals is enough
        ("swap", {"min_weight": 0.95}, [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]),
        ("weight", {}, [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]),
    ],
)
def test_by_hand(verdicts: Verdicts, action: str, limits: dict[str, float], kept: list[int], shown: list[int]) -> None:
    plan = plan_fix(verdicts, action, **limits)
    assert plan.kept.tolist() == kept
    assert plan.caption_of.tolist() == shown
    assert plan.changed == sum(a != b for a, b in zip(kept, shown, strict=True))
    assert (plan.weights is not None) == (action == "weight")
    if plan.weights is not None:
        assert np.allclose(plan.weights, 1 - np.array(P))


@pytest.mark.parametrize(
    ("action", "limits"), [("burn", {}), ("drop", {"threshold": 1.5}), ("drop", {"min_weight": -1.0})]
)
def test_what_cannot_be_is_refused(verdicts: Verdicts, action: str, limits: dict[str, float]) -> None:
    with pytest.raises(InputError):
        plan_fix(verdicts, action, **limits)
