"""Compare two ways of doing one thing: interleaved, best of several, as a ratio of CPU seconds."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

STAT = Path("/proc/stat")
_AGAIN = 5  # rounds more, at most, where a floor is missed
_BUSY = 0.1  # of a core: with more than that taken by others, the clock says nothing about work shared between cores


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
    others: float = 0.0  # cores that other processes kept busy meanwhile

    @property
    def ratio(self) -> float:
        return self.reference / self.ours

    def broken(self, case: Case) -> bool:
        """Whether the floor is missed by what was measured: a clock that ran for others too has not measured it."""
        return self.ratio < case.floor and not (case.clock is time.perf_counter and self.others > _BUSY)


def measure(case: Case) -> Timing:
    """Alternate the two, keep the best of each: neighbours on the machine then cost both alike.

    The first call of each only warms up: memory that the system hands out for the first time costs seconds, which no
    second step of a training pays. Where the floor is missed, both are run some more: what a neighbour took away is
    there in one of several rounds, what the code has lost in none.
    """
    case.ours()
    case.reference()
    best = Timing(float("inf"), float("inf"))
    began, before = time.perf_counter(), used_by_others()
    rounds = 0
    while rounds < case.repeats or (rounds < case.repeats + _AGAIN and best.ratio < case.floor):
        rounds += 1
        ours = _seconds(case.ours, case.clock)
        reference = _seconds(case.reference, case.clock) * case.scale
        ours = min(ours, _seconds(case.ours, case.clock))  # on both sides of it: the shorter is the easier to disturb
        best = Timing(min(best.ours, ours), min(best.reference, reference))
    others = (used_by_others() - before) / (time.perf_counter() - began)
    return replace(best, quality=case.check() if case.check else "", others=others)


def used_by_others() -> float:
    """CPU seconds since the start of the machine that were not this process's; 0 where the system does not tell."""
    if not STAT.exists():
        return 0.0
    user, nice, system, _, _, irq, softirq, steal = map(int, STAT.read_text().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK") - time.process_time()


def _seconds(work: Callable[[], object], clock: Callable[[], float]) -> float:
    start = clock()
    work()
    return clock() - start
