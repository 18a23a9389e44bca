"""Values and complaints in the words of JSON and YAML, none of them Python's."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mispair.value_words import complaint, kind_of, shorten


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "null"), (True, "true"), (False, "false"), (0, "a number"), (-1.5, "a number"),
        (Decimal("1.5"), "a number"), (float("nan"), "no number (NaN)"), (float("-inf"), "an infinite number"),
        ("", "an empty text"), ("x", "a text"), ([], "an empty list"), ([[]], "a list"), ((1,), "a list"),
        ({}, "an empty object"), ({"a": 1}, "an object"), (b"", "bytes"), (datetime.date(2024, 1, 1), "a date"),
        (object(), "a value"),
    ],
)  # fmt: skip
def test_kinds(value: object, kind: str) -> None:
    assert kind_of(value) == kind


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "null"), (True, "true"), (7, "7"), ("a", "'a'"), ({}, "an empty object"), ({1: 2}, "an object of 1")],
)
def test_shown(value: object, shown: str) -> None:
    assert shorten(value) == shown


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    number: float = Field(default=0.0, allow_inf_nan=False, ge=0)
    whole: int = 0
    text: str = ""
    yes: bool = False
    pair: tuple[str, str] = ("", "")
    some: list[int] = Field(default=[], max_length=2)
    table: dict[str, int] = {}
    nothing: None = None
    inner: _Strict | None = None


class _Asked(BaseModel):
    given: int


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"number": "x"}, "expected a number"), ({"number": float("nan")}, "expected a finite number"),
        ({"number": -1.0}, "input should be greater than or equal to 0"), ({"whole": []}, "expected a whole number"),
        ({"text": 1}, "expected a text"), ({"yes": 1}, "expected true or false"), ({"pair": 1}, "expected a list"),
        ({"some": {}}, "expected a list"), ({"some": [1, 2, 3]}, "expected at most 2 of them, got 3"),
        ({"table": []}, "expected an object"), ({"nothing": 1}, "expected null"), ({"inner": 3}, "expected an object"),
    ],
)  # fmt: skip
def test_what_pydantic_says_of_types_is_said_in_words(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as error:
        _Strict.model_validate(values)
    found = complaint(error.value.errors()[0])
    assert found == said
    assert not re.search("dict|tuple|bool|integer|string|instance|None", found)


@pytest.mark.parametrize(
    ("values", "said"),
    [({}, "it is missing"), ({"given": "x"}, "expected a whole number"), ({"given": 1.5}, "expected a whole number")],
)
def test_lax_ones_too(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as error:
        _Asked.model_validate(values)
    assert complaint(error.value.errors()[0]) == said
