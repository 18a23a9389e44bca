"""The benchmark's clock: a neighbour's turn is forgiven, a lost floor is not."""

from __future__ import annotations

from benchmarks.timing import Case, measure


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
    timing = measure(machine.case(floor=2, repeats=3))
    assert (timing.ours, timing.reference, machine.runs["reference"]) == (1, 3, 4)
