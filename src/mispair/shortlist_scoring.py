"""Whether a model may score a shortlist alone where it has been told to: while it learns, never when it is judged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_epoch: ContextVar[int | None] = ContextVar("epoch_of_shortlists", default=None)


@contextmanager
def allow_shortlists(epoch: int) -> Iterator[None]:
    """Inside, a model with a shortlist scores its candidates only; outside, every cell is scored by the full model.

    epoch: the one it is learning in, from 0.
    """
    token = _epoch.set(epoch)
    try:
        yield
    finally:
        _epoch.reset(token)


def epoch_of_shortlists() -> int | None:
    """The epoch that `allow_shortlists` is in force in here; None: it is not."""
    return _epoch.get()
