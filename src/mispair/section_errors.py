"""What pydantic says against a section, as one sentence for a person: where, what, and the nearest valid name."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ValidationError

from mispair.value_words import complaint, shorten


def first_complaint(error: ValidationError, where: str, names_beside: Callable[[list[str]], dict[str, str]]) -> str:
    """The first complaint as one sentence.

    Args:
        where: what it begins with: a file, or "the configuration".
        names_beside: for the path of an unknown name, the valid names there and where each one is.
    """
    complaints = error.errors()
    # Of a value that may be a word or a number ("auto" or 0.1), the number's complaint says more.
    first = next((e for e in complaints if not str(e["loc"][-1:]).startswith('("literal[')), complaints[0])
    path = [str(step) for step in first["loc"] if str(step) not in ("constrained-float", "float")]
    path = [step if len(step) <= 60 else f"{step[:60]}..." for step in path]
    dotted = ".".join(path) or "it"
    if first["type"] == "extra_forbidden":
        known = names_beside(path)
        near = difflib.get_close_matches(path[-1], known, n=1, cutoff=0.4)
        beside = ", ".join(name for name, place in known.items() if name == place)
        hint = f"did you mean {'.'.join([*path[:-1], known[near[0]]])}?" if near else f"known are {beside}"
        return f"{where}: there is no {dotted}; {hint}"
    given = first.get("input")
    shown = "" if isinstance(given, (dict, BaseModel)) or first["type"] == "value_error" else f", got {shorten(given)}"
    subject = "" if first["type"] == "value_error" and not path else f"{dotted}: "
    return f"{where}: {subject}{complaint(first)}{shown}"


def names_at(sections: list[Any]) -> dict[str, str]:
    """The names of fields of `sections` and of the sections these hold: name -> place from here."""
    names = {name: name for section in sections for name in sorted(section.model_fields)}
    below = {
        inner: f"{name}.{inner}"
        for section in sections
        for name in section.model_fields
        for part in sections_at(section, name)
        for inner in part.model_fields
    }
    return below | names


def sections_at(section: Any, name: str) -> list[Any]:
    """The sections that the field `name` of a section may hold."""
    annotation = section.model_fields[name].annotation if name in section.model_fields else None
    options = getattr(annotation, "__args__", None) or (annotation,)
    return [option for option in options if hasattr(option, "model_fields")]
