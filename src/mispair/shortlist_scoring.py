"""Whether a model may score a shortlist alone where it has been told to: while it learns, never when it is judged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_allowed: ContextVar[bool] = ContextVar("shortlists_allowed", default=False)


@contextmanager
def allow_shortlists() -> Iterator[None]:
    """Inside, a model with a shortlist scores its candidates only; outside, every cell is scored by the full model."""
    token = _allowed.set(True)
    try:
        yield
    finally:
        _allowed.reset(token)


def shortlists_allowed() -> bool:
    """Whether `allow_shortlists` is in force here."""
    return _allowed.get()
