"""The drawings put things where the numbers say."""

import math
import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from mispair.report.charts import Axes, short, sparkline, ticks

AXES = Axes((0.0, 10.0), (0.0, 100.0), width=356, height=146)  # 300 x 100 inside


def numbers(text, name):
    return [float(value) for value in re.findall(rf'{name}="([-\d.]+)"', text)]


def test_places_by_hand():
    assert (AXES.px(0), AXES.px(10), AXES.px(5)) == (46, 346, 196)
    assert (AXES.py(0), AXES.py(100), AXES.py(25)) == (112, 12, 87)


def test_root_places_by_hand():
    axes = Axes((0.0, 1.0), (0.0, 100.0), width=356, height=146, root=True)
    assert (axes.py(0), axes.py(100), axes.py(25)) == (112, 12, 62)


def test_root_ticks_by_hand():
    drawn = Axes((0.0, 1.0), (0.0, 3900.0), root=True).draw("a", x_ticks=[])
    assert re.findall(r">([\d,]+)</text>", drawn) == ["0", "200", "500", "2,000"]


def test_bars_by_hand():
    drawn = AXES.bars([0, 5, 10], [50, 100], ["low", "high"])
    assert numbers(drawn, "height") == [50, 100]
    assert numbers(drawn, "x") == [46.5, 196.5]
    assert numbers(drawn, "width") == [149, 149]
    assert 'class="low"' in drawn
    assert 'class="high"' in drawn


def test_nothing_is_drawn_for_an_empty_bin_and_nothing_above_the_top():
    drawn = AXES.bars([0, 5, 10], [0, 250], "bar")
    assert numbers(drawn, "height") == [100]


def test_lines_and_steps_by_hand():
    assert 'points="46,112 196,62 346,12"' in AXES.line([0, 5, 10], [0, 50, 100], "a")
    assert 'd="M46 112L46 62L196 62L196 12L346 12L346 112Z"' in AXES.steps([0, 5, 10], [50, 100], "a")


def test_a_label_stands_where_there_is_room():
    assert 'text-anchor="start"' in AXES.rule(1, "here")
    assert 'text-anchor="end"' in AXES.rule(9, "here")


def test_drawing_is_named_for_who_does_not_see_it():
    drawn = AXES.draw('a "name" <b>')
    assert drawn.startswith('<svg class="chart" role="img" aria-label="a &quot;name&quot; &lt;b&gt;"')


def test_sparkline_by_hand():
    assert 'points="3,23 55,3 107,13"' in sparkline([0.0, 1.0, 0.5])
    assert "0.00, 1.00, 0.50" in sparkline([0.0, 1.0, 0.5])
    assert "<svg" in sparkline([0.3])


def test_ticks_by_hand():
    assert ticks(0, 100, 4) == [0, 25, 50, 75, 100]
    assert ticks(1, 14, 5) == [5, 10]
    assert ticks(2, 2, 4) == [2]
    assert ticks(math.nan, 1, 4) == []


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(1, 7))
def test_ticks_lie_inside_and_are_even(low, span, most):
    found = ticks(low, low + span, most)
    assert len(found) <= most + 1
    slack = 1e-6 * (abs(low) + span)
    assert all(low - slack <= value <= low + span + slack for value in found)
    steps = [b - a for a, b in pairwise(found)]
    assert all(math.isclose(step, steps[0], rel_tol=1e-6, abs_tol=slack) for step in steps)


def test_labels_by_hand():
    assert [short(v) for v in (0, -0.0, 1000, 0.25, 0.30000000000000004, 1e-7)] == [
        "0",
        "0",
        "1,000",
        "0.25",
        "0.3",
        "1e-07",
    ]
