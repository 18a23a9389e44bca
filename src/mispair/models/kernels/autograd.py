"""The way into a function that has a backward of its own."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.autograd import Function


def differentiable(function: type[Function], *args: Any) -> Tensor:
    """`function.apply(*args)`, which torch leaves without types."""
    out: Tensor = function.apply(*args)  # type: ignore[no-untyped-call]
    return out
