"""YAML from anybody: plain values, or one sentence in no time."""

import time

import pytest

from mispair.errors import InputError
from mispair.value_words import shorten
from mispair.yaml_values import read_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1\nb: [2, 3.5, x]", {"a": 1, "b": [2, 3.5, "x"]}),
        ("when: 2024-05-06", {"when": "2024-05-06"}),
        ("2024-05-06 07:08:09", "2024-05-06 07:08:09"),
        ("", None),
        ("9223372036854775807", 2**63 - 1),
        ("0x1F", 31),
        ("true", True),
    ],
)
def test_values(text, value):
    assert read_yaml(text, "here") == value


def test_a_text_that_is_read_again_is_a_value_of_its_own():
    """The text is parsed once; whoever changes what it got changes nobody else's."""
    first = read_yaml("a: {b: [1]}", "here")
    first["a"]["b"].append(2)
    assert read_yaml("a: {b: [1]}", "there") == {"a": {"b": [1]}}


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + k)}: &{chr(98 + k)} [{', '.join(['*' + chr(97 + k)] * 9)}]\n" for k in range(9)
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (BOMB, "aliases"),
        ("&a [*a]", "aliases"),
        ("[" * 5000, "nested more than"),
        ("{a: " * 5000, "nested more than"),
        ("\n".join(" " * k + "a:" for k in range(400)), "nested more than"),
        ("9" * 5000, "too long"),
        ("9223372036854775808", "too large"),
        ("-" + "9" * 30, "too large"),
        ("? [a]\n: 1", "a name must be text"),
        ("? {a: 1}\n: 1", "a name must be text"),
        ("a: [", "is not valid YAML"),
        ("!!python/object/apply:os.system [true]", "is not valid YAML"),
        ("a: \x00", "is not valid YAML"),
        ("!!int nonsense", "is not valid YAML"),
        ("x" * 300_000, "more than the 200,000"),
        ("a: b: c", "is not valid YAML"),
    ],
)
def test_what_could_hang_or_hurt_is_refused_at_once(text, reason):
    began = time.monotonic()
    with pytest.raises(InputError, match=reason) as error:
        read_yaml(text, "x.yaml", "see configs/")
    assert time.monotonic() - began < 20
    assert str(error.value).startswith("x.yaml")
    assert len(str(error.value)) < 300
    assert "see configs/" in str(error.value)


def test_a_large_value_is_shown_short():
    assert shorten("x" * 10**6) == "'" + "x" * 59 + "..."
    assert shorten(list(range(10**6))) == "a list of 1,000,000"
    assert shorten(7) == "7"
