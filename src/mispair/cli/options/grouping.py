"""How a verb asks for a group of options and is handed it as one value.

A group is a frozen dataclass whose defaults are `typer.Option`s:

    @grouped
    def check(data: str = DATA, *, table: TableOptions) -> None: ...

is the verb `check DATA --features ... --ids ...`, called with `table.features`, `table.ids`, ...
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable
from typing import Any

import typer


@dataclasses.dataclass(frozen=True)
class OptionGroup:
    """The base of groups; `said` is what they have in common."""

    def said(self) -> dict[str, Any]:
        """The options that were given, by name."""
        named = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: value for name, value in named.items() if not (value is None or value is False or value == [])}


def grouped(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb with every parameter that is an `OptionGroup` replaced by that group's options."""
    hints = typing.get_type_hints(verb)
    own: list[inspect.Parameter] = []
    groups: dict[str, type[OptionGroup]] = {}
    options: list[inspect.Parameter] = []
    for parameter in inspect.signature(verb).parameters.values():
        kind = hints[parameter.name]
        if isinstance(kind, type) and issubclass(kind, OptionGroup):
            groups[parameter.name] = kind
            options += _options(kind)
        else:
            own.append(parameter.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(verb)
    def call(**values: Any) -> None:
        made = {
            name: kind(**{option.name: values.pop(option.name) for option in _options(kind)})
            for name, kind in groups.items()
        }
        verb(**values, **made)

    parameters = [*own, *options]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def _options(group: type[OptionGroup]) -> list[inspect.Parameter]:
    hints = typing.get_type_hints(group)
    return [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in dataclasses.fields(group)
    ]


def option(default: Any, name: str | None = None, *, panel: str, help: str, **more: Any) -> Any:
    """An option of a group, listed under `panel`."""
    return typer.Option(default, *([] if name is None else [name]), rich_help_panel=panel, help=help, **more)
