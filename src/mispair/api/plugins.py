"""How another package, or a notebook, adds a method or a backbone of its own."""

from __future__ import annotations

from typing import TypeVar

from mispair.errors import InputError

T = TypeVar("T")


def register(cls: type[T]) -> type[T]:
    """Make a method or a backbone of your own known by the name in its `Config`; works as a decorator.

    Args:
        cls: a subclass of `mispair.methods.MethodBase` or of `mispair.models.Backbone`.

    Returns:
        The class.

    Raises:
        InputError: it is neither, or its name is taken.

    Example:
        >>> @mp.register
        ... class Mine(MethodBase): ...
        >>> mp.train("pairs.csv", method="mine")
    """
    from mispair.methods import METHODS, MethodBase
    from mispair.models import MODELS, Backbone

    if isinstance(cls, type) and issubclass(cls, MethodBase):
        METHODS.register(cls)
    elif isinstance(cls, type) and issubclass(cls, Backbone):
        MODELS.register(cls)
    else:
        raise InputError(
            f"{getattr(cls, '__name__', cls)!s:.60} is neither a method nor a model: derive it from "
            "mispair.methods.MethodBase or mispair.models.Backbone"
        )
    return cls
