"""What a value in a file is, in the words of JSON and YAML: null, true, a number, a text, a list, an object."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Number
from typing import Any

_LISTS = (list, tuple, set, frozenset)


def kind_of(value: object) -> str:
    """What kind of value it is, with its article: "a list", "an empty text", "null"."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Number):
        finite = not isinstance(value, float) or math.isfinite(value)
        return "a number" if finite else "no number (NaN)" if value != value else "an infinite number"
    if isinstance(value, str):
        return "a text" if value else "an empty text"
    if isinstance(value, dict):
        return "an object" if value else "an empty object"
    if isinstance(value, _LISTS):
        return "a list" if value else "an empty list"
    return "bytes" if isinstance(value, (bytes, bytearray)) else "a date" if hasattr(value, "isoformat") else "a value"


def shorten(value: object, most: int = 60) -> str:
    """A value as a person may see it in a sentence, however large it is."""
    if value is None or isinstance(value, bool):
        return kind_of(value)
    if isinstance(value, (dict, *_LISTS)):
        return f"{kind_of(value)} of {len(value):,}" if value else kind_of(value)
    text = repr(value[: most + 1]) if isinstance(value, (str, bytes)) else repr(value)
    return text if len(text) <= most else f"{text[:most]}..."


_EXPECTED = {
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type", "dataclass_type"), "an object"),
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "frozen_set_type"), "a list"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("int_type", "int_parsing", "int_parsing_size", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    "finite_number": "a finite number", "string_type": "a text", "none_required": "null",
}  # fmt: skip


def complaint(error: Mapping[str, Any]) -> str:
    """What would have been right, of one entry of a `ValidationError.errors()`, which speaks of Python's types."""
    kind = str(error["type"])
    if kind in _EXPECTED:
        return f"expected {_EXPECTED[kind]}"
    if kind == "missing":
        return "it is missing"
    if kind in ("too_long", "too_short") and "actual_length" in error.get("ctx", {}):
        limits = {"too_long": ("at most", "max_length"), "too_short": ("at least", "min_length")}[kind]
        return f"expected {limits[0]} {error['ctx'][limits[1]]} of them, got {error['ctx']['actual_length']}"
    message = str(error["msg"]).removeprefix("Value error, ")
    return message[:1].lower() + message[1:]
