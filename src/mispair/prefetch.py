"""Work done ahead of its use by threads, handed over in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

S = TypeVar("S")
T = TypeVar("T")


def map_ahead(work: Callable[[S], T], items: Iterable[S], threads: int, window: int) -> Generator[tuple[S, T]]:
    """(item, work(item)) in order, with up to `window` items under way."""
    if threads == 0:
        for item in items:
            yield item, work(item)
        return
    waiting: deque[tuple[S, Future[T]]] = deque()
    pool = ThreadPoolExecutor(threads, "mispair-ahead")
    try:
        for item in items:
            waiting.append((item, pool.submit(work, item)))
            if len(waiting) >= window:
                item, future = waiting.popleft()
                yield item, future.result()
        for item, future in waiting:
            yield item, future.result()
    finally:
        pool.shutdown(cancel_futures=True)
