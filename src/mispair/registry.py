"""Classes by the name of their configuration: built in, registered by hand, or brought by another package.

A package offers its classes in an entry point group, `mispair.methods` or `mispair.models`; the name of the entry point
is the name in the configuration. Nothing of it is imported before somebody asks for a name that is not built in.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from mispair.errors import InputError
from mispair.section import Section

T = TypeVar("T")


class Registry(Generic[T]):
    """Classes of one kind ("method", "model"), each carrying its configuration as `Config`."""

    def __init__(
        self,
        kind: str,
        base: type[T],
        config: type[Section],
        builtins: Iterable[type[T]],
        facts: Mapping[str, type] | None = None,
    ) -> None:
        """`base` and `config` are what a class and its `Config` derive from; `facts` other attributes it must have."""
        self.kind, self.base, self.config, self.facts = kind, base, config, facts or {}
        self.group = f"mispair.{kind}s"
        self._classes: dict[str, type[T]] = {}
        for cls in builtins:
            self.register(cls)

    def register(self, cls: type[T]) -> type[T]:
        """Add a class under the name its `Config` gives; returns it, so that it can decorate.

        Raises InputError if the class does not keep the contract, or its name is taken by another class.
        """
        name = self._name(cls)
        known = self._classes.setdefault(name, cls)
        if known is not cls:
            raise InputError(
                f"{_full(cls)} cannot be registered: there is a {self.kind} {name!r} already, {_full(known)}"
            )
        return cls

    def names(self) -> list[str]:
        """All names, built-in ones first; the packages behind the others are not imported."""
        return list(dict.fromkeys([*self._classes, *(point.name for point in self._points())]))

    def find(self, name: str) -> type[T]:
        """The class of that name. Raises InputError with the nearest name, or saying why its package failed."""
        if name in self._classes:
            return self._classes[name]
        for point in self._points():
            if point.name == name:
                return self._load(point)
        raise InputError(f"there is no {self.kind} {name!r}; {nearest(name, self.names())}")

    def loaded(self) -> dict[str, type[T]]:
        """The classes already here: those built in or registered, and of other packages those asked for before."""
        return dict(self._classes)

    def everybody(self) -> tuple[dict[str, type[T]], list[str]]:
        """All classes by name, and one sentence for each that another package promises and cannot deliver."""
        problems = []
        for point in self._points():
            try:
                self.find(point.name)
            except InputError as error:
                problems.append(str(error))
        return dict(self._classes), problems

    def parse(self, values: Any) -> Any:
        """A configuration from a mapping with a `name`, as the class of that name declares it.

        Raises InputError for an unknown name, pydantic's ValidationError for values that do not fit.
        """
        if not isinstance(values, dict):
            return values
        if not isinstance(values.get("name"), str):
            raise InputError(f"a {self.kind} needs a name; known are {', '.join(self.names())}")
        return self.config_of(values["name"]).model_validate(values)

    def config_of(self, name: str) -> type[Section]:
        """The configuration class of that name."""
        config: type[Section] = self.find(name).Config  # type: ignore[attr-defined]
        return config

    def _points(self) -> list[EntryPoint]:
        return sorted(entry_points(group=self.group), key=lambda point: point.name)

    def _load(self, point: EntryPoint) -> type[T]:
        try:
            cls = point.load()
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise InputError(
                f"the {self.kind} {point.name!r} comes from {point.value}, which cannot be imported ({reason})"
            ) from error
        if self._name(cls) != point.name:
            raise InputError(
                f"{_full(cls)} is offered as the {self.kind} {point.name!r} and calls itself {self._name(cls)!r}; "
                f"the entry point in {self.group} must have the name of its configuration"
            )
        return self.register(cls)

    def _name(self, cls: Any) -> str:
        if not (isinstance(cls, type) and issubclass(cls, self.base)):
            raise InputError(f"{cls!r} cannot be a {self.kind}: it must be a subclass of {_full(self.base)}")
        config = getattr(cls, "Config", None)
        if not (isinstance(config, type) and issubclass(config, self.config)):
            raise InputError(f"{_full(cls)} must carry its configuration as Config, a subclass of {_full(self.config)}")
        for fact, expected in self.facts.items():
            if not isinstance(getattr(cls, fact, None), expected):
                raise InputError(f"{_full(cls)} must carry {fact}, a value of {_full(expected)}")
        name = config.model_fields["name"].default
        if not isinstance(name, str) or not name:
            raise InputError(f'{_full(config)} must name the {self.kind}: name: Literal["..."] = "..."')
        return name


def nearest(name: str, known: Iterable[str]) -> str:
    """What to say beside a name nobody knows: the most similar one, or all there are."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f"did you mean {near[0]}? Known are {', '.join(names)}" if near else f"known are {', '.join(names)}"


def _full(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
