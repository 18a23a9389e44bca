"""The model card: no markup from strangers, no sentence that the figures do not support."""

from __future__ import annotations

from mispair.config.load import validate
from mispair.workflows.model_card import model_card

RECALLS = dict.fromkeys(("i2t_r1", "i2t_r5", "i2t_r10", "t2i_r1", "t2i_r5", "t2i_r10"), 50.0) | {"rsum": 300.0}


def card(of: dict[str, object], **summary: object) -> str:
    config = validate({"data": of, "method": {"name": "plain"}, "model": {"name": "vse"}}, "test")
    cost = {"networks_trained": 1, "networks_scored": 1, "steps": 9, "passes": 1.0, "forward_passes": 0.0}
    told = {"data": {"name": "x", "pairs": 9, "hash": "0" * 64}, "noise": {"text": "none"}, "cost": cost}
    return model_card(config, {**told, "seconds": 1.0, "best_epoch": 0, "test": RECALLS, **summary})


def test_names_of_sides_and_data_are_no_markup() -> None:
    sides = ("<img src=x>", "a `b` [c](http://d)\n# e")
    said = card({"path": "pairs.csv", "sides": sides}, data={"name": "`x` | *y*", "pairs": 9, "hash": "0" * 64})
    assert "`<img src=x>`" in said
    assert "`a 'b' [c](http://d) # e`" in said
    assert "\n# e" not in said
    assert "`'x' | *y*`" in said


def test_data_as_it_came_makes_recalls_a_lower_bound() -> None:
    assert "lower bound" in card({"path": "pairs.csv"})
    assert "lower bound" not in card({"path": "scenes"})
    assert "lower bound" not in card({"path": "pairs.csv", "noise": {"rate": 0.4}})


def test_the_split_is_no_estimate() -> None:
    said = card({"path": "scenes"}, called_mismatched=0.45)
    assert "45.0%" in said
    assert "no estimate" in said


def test_an_estimate_is_said_with_its_interval_and_why_an_audit_may_differ() -> None:
    rate = {"mismatch_rate": 0.28, "mismatch_rate_ci": (0.25, 0.31), "conclusive": True}
    said = card({"path": "scenes"}, called_mismatched=0.3, **rate)
    assert "treated 30.0%" in said
    assert "The estimated rate is 28.0% (25.0% to 31.0%)" in said
    assert "believe the audit" in said
    assert "treated" not in card({"path": "scenes"}, **rate), "a method without a split treats none so"


def test_where_nothing_can_be_told_the_card_says_what_to_do() -> None:
    rate = {"mismatch_rate": 0.2, "mismatch_rate_ci": (0.0, 0.45), "conclusive": False}
    said = card({"path": "scenes"}, called_mismatched=0.3, **rate)
    assert "between 0% and 45%: this model cannot tell" in said
    assert "Use a stronger encoder" in said
    assert "have 100 pairs looked at" in said
    assert "20.0%" not in said
