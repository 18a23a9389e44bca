"""Values of sections within sections, before anybody validates them: `a.b=c` read, one table laid over another."""

from __future__ import annotations

from typing import Any

from mispair.errors import InputError
from mispair.value_words import shorten
from mispair.yaml_values import read_yaml

_DEEPEST = 8  # names in a path such as data.noise.rate


def parse_assignment(assignment: str) -> dict[str, Any]:
    """`--set a.b=c` as {"a": {"b": c}}, the value in YAML. Raises InputError where it is no assignment."""
    key, equals, text = assignment.partition("=")
    if not equals or not key.strip():
        raise InputError(
            f"--set takes section.name=value, got {shorten(assignment)}; for example --set train.epochs=10"
        )
    value = read_yaml(text, f"--set {key[:60]}", "quote text that holds special characters")
    for part in reversed(key.strip().split(".", _DEEPEST)):
        value = {part: value}
    assert isinstance(value, dict)
    return value


def lay_over(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """A copy of `base` in which `over` wins; a section that changes its `name` starts from its own defaults."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            renamed = "name" in value and value["name"] != old.get("name")
            merged[key] = value if renamed else lay_over(old, value)
        else:
            merged[key] = value
    return merged
