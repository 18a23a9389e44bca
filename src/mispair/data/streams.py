"""Which pairs meet in a batch: seeded streams of pair ids, full batches, one order whatever the number of processes.

`batch_size` is that of all processes together: each of them draws the same batch and reads its share of it
(`mispair.runtime.epoch_run`). All draws come from the given generator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mispair.errors import InputError

Ids = NDArray[np.int64]


class SurveyBatch(NamedTuple):
    """A full batch of a survey. `fresh` is False where the tail was filled with pairs seen before."""

    pair_ids: Ids  # (B,)
    fresh: NDArray[np.bool_]  # (B,)


def shuffled(ids: Ids, rng: np.random.Generator) -> Ids:
    """The same ids in a drawn order."""
    return rng.permutation(np.asarray(ids, np.int64))


def lockstep(streams: Mapping[str, Ids], batch_size: int, rng: np.random.Generator) -> Iterator[dict[str, Ids]]:
    """Batches of several named streams side by side.

    The first stream sets the length: each of its ids once, the last batch filled from its beginning. The others
    start over in a new order whenever they run out. No batch holds an id twice.
    """
    for name, ids in streams.items():
        _refuse_short(f"the stream '{name}'", len(ids), batch_size)
    lead, *others = streams
    # One generator for each stream: how often a short one is reshuffled must not move the others.
    seeds = rng.integers(0, 2**63, len(streams))
    orders = [
        _endless(np.asarray(streams[name], np.int64), seed, batch_size)
        for name, seed in zip(others, seeds[1:], strict=True)
    ]
    first = shuffled(streams[lead], np.random.default_rng(seeds[0]))
    for batch in _wrapped(first, batch_size):
        yield {lead: batch, **{name: next(order) for name, order in zip(others, orders, strict=True)}}


def survey_batches(n: int, batch_size: int, rng: np.random.Generator) -> Iterator[SurveyBatch]:
    """Every pair 0..n-1 once, in full batches: no pair is judged among fewer others than the rest."""
    _refuse_short("the data", n, batch_size)
    order = rng.permutation(n)
    for step, batch in enumerate(_wrapped(order, batch_size)):
        fresh = np.arange(step * batch_size, (step + 1) * batch_size) < n
        yield SurveyBatch(batch, fresh)


def _wrapped(order: Ids, batch_size: int) -> Iterator[Ids]:
    """Consecutive full batches; the last one is filled from the beginning."""
    for start in range(0, len(order), batch_size):
        batch = order[start : start + batch_size]
        yield batch if len(batch) == batch_size else np.concatenate([batch, order[: batch_size - len(batch)]])


def _endless(ids: Ids, seed: int, batch_size: int) -> Iterator[Ids]:
    """Full batches for ever: pass after pass, each in a new order."""
    rng = np.random.default_rng(seed)
    rest = np.empty(0, np.int64)
    while True:
        order = shuffled(ids, rng)
        # Pairs still waiting from the last pass share a batch with the first of this one: those must be others.
        waiting = np.isin(order, rest)
        fill = np.flatnonzero(~waiting)[: batch_size - len(rest)] if len(rest) else np.empty(0, np.int64)
        order = np.concatenate([rest, order[fill], np.delete(order, fill)])
        stop = len(order) // batch_size * batch_size
        yield from order[:stop].reshape(-1, batch_size)
        rest = order[stop:]


def _refuse_short(name: str, length: int, batch_size: int) -> None:
    if length < batch_size:
        raise InputError(f"{name} has {length:,} pairs, fewer than one batch of {batch_size}; use a smaller batch_size")
