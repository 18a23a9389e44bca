"""Compare two ways of doing one thing: interleaved, best of several, as a ratio of CPU seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

_AGAIN = 5  # rounds more, at most, where a floor is missed


@dataclass(frozen=True)
class Case:
    """One hot path against the reference way of doing it."""

    path: str
    against: str
    floor: float  # the ratio this path must reach
    ours: Callable[[], object]
    reference: Callable[[], object]
    repeats: int = 5
    scale: float = 1.0  # reference seconds are multiplied by this when only a part of the work was run: say so in note
    note: str = ""
    clock: Callable[[], float] = time.process_time  # time.perf_counter where work is shared between cores
    check: Callable[[], str] | None = None  # a figure of quality shown beside the ratio; raises when it is wrong


@dataclass(frozen=True)
class Timing:
    """What a case measured."""

    ours: float
    reference: float
    quality: str = ""

    @property
    def ratio(self) -> float:
        return self.reference / self.ours


def measure(case: Case) -> Timing:
    """Alternate the two, keep the best of each: neighbours on the machine then cost both alike.

    The first call of each only warms up: memory that the system hands out for the first time costs seconds, which no
    second step of a training pays. Where the floor is missed, both are run some more: what a neighbour took away is
    there in one of several rounds, what the code has lost in none.
    """
    case.ours()
    case.reference()
    best = Timing(float("inf"), float("inf"))
    rounds = 0
    while rounds < case.repeats or (rounds < case.repeats + _AGAIN and best.ratio < case.floor):
        rounds += 1
        ours = _seconds(case.ours, case.clock)
        reference = _seconds(case.reference, case.clock) * case.scale
        ours = min(ours, _seconds(case.ours, case.clock))  # on both sides of it: the shorter is the easier to disturb
        best = Timing(min(best.ours, ours), min(best.reference, reference))
    return replace(best, quality=case.check() if case.check else "")


def _seconds(work: Callable[[], object], clock: Callable[[], float]) -> float:
    start = clock()
    work()
    return clock() - start
