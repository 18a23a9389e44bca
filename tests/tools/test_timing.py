"""The benchmark's clock: a neighbour's turn is forgiven, a lost floor is not."""

from __future__ import annotations

import time

import pytest
from benchmarks import timing
from benchmarks.timing import Case, Timing, measure


class Machine:
    """Work that takes as many seconds as the next of a list says, the last from then on."""

    def __init__(self, ours, reference):
        self.seconds, self.now, self.runs = {"ours": ours, "reference": reference}, 0.0, {"ours": 0, "reference": 0}

    def work(self, who):
        def run():
            times = self.seconds[who]
            self.now += times[min(self.runs[who], len(times) - 1)]
            self.runs[who] += 1

        return run

    def case(self, floor, repeats=1):
        return Case("path", "other", floor, self.work("ours"), self.work("reference"), repeats, clock=lambda: self.now)


def test_a_round_that_a_neighbour_disturbed_is_made_up_for():
    machine = Machine(ours=[9, 4, 4, 4, 1], reference=[9, 3])
    assert measure(machine.case(floor=2.5)).ratio == 3
    assert machine.runs["reference"] == 3  # once to warm up, once too slow for us, once more


def test_what_is_lost_stays_lost():
    machine = Machine(ours=[2], reference=[3])
    assert measure(machine.case(floor=2, repeats=2)).ratio == 1.5
    assert machine.runs["reference"] == 1 + 2 + 5


def test_where_the_floor_is_reached_nothing_is_added():
    machine = Machine(ours=[1], reference=[3])
    found = measure(machine.case(floor=2, repeats=3))
    assert (found.ours, found.reference, machine.runs["reference"]) == (1, 3, 4)


@pytest.mark.parametrize(
    ("clock", "ratio", "others", "broken"),
    [
        (time.process_time, 1.5, 0.0, True), (time.process_time, 1.5, 1.0, True), (time.process_time, 1.8, 0.0, False),
        (time.perf_counter, 1.5, 0.0, True), (time.perf_counter, 1.5, 1.0, False), (time.perf_counter, 1.8, 1.0, False),
    ],
)  # fmt: skip
def test_only_a_clock_that_ran_for_others_too_is_no_judge(clock, ratio, others, broken):
    case = Case("path", "other", 1.7, lambda: None, lambda: None, clock=clock)
    assert Timing(1.0, ratio, others=others).broken(case) is broken


def test_what_others_used_is_told(monkeypatch, tmp_path):
    machine, used = Machine(ours=[1], reference=[3]), iter([100.0, 100.0 + 1e6])
    with monkeypatch.context() as patched:
        patched.setattr(timing, "used_by_others", lambda: next(used))
        assert measure(machine.case(floor=2)).others > 1
    monkeypatch.setattr(timing, "STAT", tmp_path / "stat")
    assert timing.used_by_others() == 0, "not every system tells"
    (tmp_path / "stat").write_text("cpu  300 200 100 7777777 8888888 10 20 30 0 0\ncpu0 1 2 3\n")
    monkeypatch.setattr(timing.os, "sysconf", lambda name: 10)
    monkeypatch.setattr(timing.time, "process_time", lambda: 6.0)
    assert timing.used_by_others() == 60
