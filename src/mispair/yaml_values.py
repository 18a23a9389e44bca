"""YAML that anybody may have written, as plain values of bounded size: text, numbers, lists and tables.

What could make a reader hang or fill the memory is refused: aliases, deep nesting, numbers of thousands of digits,
long files. A date is the text it is written as.
"""

from __future__ import annotations

from copy import deepcopy
from functools import lru_cache
from typing import Any

import yaml

from mispair.errors import InputError

LONGEST = 200_000  # characters
DEEPEST = 20
_LARGEST = 2**63


def read_yaml(text: str, where: str, remedy: str = "") -> Any:
    """The value that `text` holds.

    Raises:
        InputError: one sentence that begins with `where`, a file or an option, and ends with `remedy`.
    """
    remedy = f"; {remedy}" if remedy else ""
    if len(text) > LONGEST:
        raise InputError(
            f"{where} has {len(text):,} characters, more than the {LONGEST:,} of any configuration{remedy}"
        )
    try:
        return deepcopy(_parse(text))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        reason = f": {error.problem}" if isinstance(error, _RefusedError) else ""
        raise InputError(f"{where}{line} is not valid YAML{reason}{remedy}") from None
    except (ValueError, RecursionError, OverflowError):
        raise InputError(f"{where} is not valid YAML{remedy}") from None


@lru_cache(maxsize=256)
def _parse(text: str) -> Any:
    """The cells of a grid share files and options, and parsing one takes longer than all that is done with it."""
    return _Loader(text).get_single_data()


class _RefusedError(yaml.MarkedYAMLError):
    """Good YAML that we do not read."""


class _Loader(yaml.SafeLoader):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            self._refuse("aliases (*name) are not read", self.peek_event())  # type: ignore[no-untyped-call]
        if self._depth > DEEPEST:
            self._refuse(f"it is nested more than {DEEPEST} deep", self.peek_event())  # type: ignore[no-untyped-call]
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1

    def construct_yaml_int(self, node: Any) -> Any:
        if len(node.value) > 40:
            self._refuse("a number is too long", node)
        value = super().construct_yaml_int(node)
        if not -_LARGEST <= value < _LARGEST:
            self._refuse(f"{value} is too large a number", node)
        return value

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._refuse("a name must be text", key)
        return super().construct_mapping(node, deep)

    def _refuse(self, problem: str, at: Any) -> None:
        raise _RefusedError(problem=problem, problem_mark=at.start_mark)


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)
_Loader.add_constructor("tag:yaml.org,2002:timestamp", yaml.SafeLoader.construct_yaml_str)  # type: ignore[type-var]
