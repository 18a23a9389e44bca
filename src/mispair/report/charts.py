"""Small drawings as inline SVG: bars, curves and lines on one set of axes. Colours are classes, so themes apply.

The page's security policy forbids style attributes: everything is geometry and class names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mispair.report.html import Html, join, tag

Numbers = Sequence[float]
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 10, 12, 34


@dataclass(frozen=True)
class Axes:
    """A drawing area and the ranges it shows."""

    x: tuple[float, float]
    y: tuple[float, float]
    width: int = 360
    height: int = 200
    root: bool = False  # heights by their square root: a tall bar leaves small ones visible

    def px(self, x: float) -> float:
        low, high = self.x
        return _LEFT + (x - low) / ((high - low) or 1.0) * (self.width - _LEFT - _RIGHT)

    def py(self, y: float) -> float:
        low, high = self.y
        share = (y - low) / ((high - low) or 1.0)
        return (
            self.height
            - _BOTTOM
            - (math.sqrt(max(share, 0.0)) if self.root else share) * (self.height - _TOP - _BOTTOM)
        )

    def bars(self, edges: Numbers, heights: Numbers, classes: Sequence[str] | str) -> Html:
        """One bar between each two edges."""
        names = [classes] * len(heights) if isinstance(classes, str) else classes
        base = self.py(self.y[0])
        drawn = []
        for left, right, height, name in zip(edges, edges[1:], heights, names, strict=False):
            if height <= 0:
                continue
            top = self.py(min(height, self.y[1]))
            gap = 0.5 if self.px(right) - self.px(left) > 3 else 0.0
            size = {"width": _n(self.px(right) - self.px(left) - 2 * gap), "height": _n(base - top)}
            drawn.append(tag("rect", class_=name, x=_n(self.px(left) + gap), y=_n(top), **size))
        return join(drawn)

    def line(self, xs: Numbers, ys: Numbers, name: str) -> Html:
        points = " ".join(f"{_n(self.px(x))},{_n(self.py(min(y, self.y[1])))}" for x, y in zip(xs, ys, strict=True))
        return tag("polyline", class_=f"line {name}", points=points)

    def dots(self, xs: Numbers, ys: Numbers, name: str) -> Html:
        pairs = zip(xs, ys, strict=True)
        return join([tag("circle", class_=name, cx=_n(self.px(x)), cy=_n(self.py(y)), r=2.5) for x, y in pairs])

    def steps(self, edges: Numbers, heights: Numbers, name: str) -> Html:
        """The outline of a histogram: two of them stay readable on top of each other."""
        at = [f"M{_n(self.px(edges[0]))} {_n(self.py(0))}"]
        for left, right, height in zip(edges, edges[1:], heights, strict=False):
            level = _n(self.py(min(height, self.y[1])))
            at.append(f"L{_n(self.px(left))} {level}L{_n(self.px(right))} {level}")
        at.append(f"L{_n(self.px(edges[-1]))} {_n(self.py(0))}Z")
        return tag("path", class_=f"area {name}", d="".join(at))

    def rule(self, x: float, label: str) -> Html:
        """A vertical line with a word beside it, on the side that has room."""
        at = self.px(x)
        left = at > self.width * 0.62
        text = {"x": _n(at + (-5 if left else 5)), "y": _TOP + 8, "text_anchor": "end" if left else "start"}
        line = tag("line", class_="rule", x1=_n(at), x2=_n(at), y1=_TOP - 4, y2=self.height - _BOTTOM)
        return join([line, tag("text", label, class_="note", **text)])

    def draw(self, label: str, *marks: Html, x_name: str = "", x_ticks: Numbers | None = None, form: str = "") -> Html:
        """The whole drawing; `label` is what somebody hears who does not see it."""
        base = self.height - _BOTTOM
        parts: list[Html] = []
        for value in _root_ticks(self.y[1]) if self.root else ticks(*self.y, most=4):
            at = _n(self.py(value))
            parts.append(tag("line", class_="grid", x1=_LEFT, x2=self.width - _RIGHT, y1=at, y2=at))
            parts.append(
                tag("text", short(value), class_="tick", x=_LEFT - 6, y=_n(self.py(value) + 4), text_anchor="end")
            )
        for value in ticks(*self.x, most=5) if x_ticks is None else x_ticks:
            spot = {"x": _n(self.px(value)), "y": base + 15, "text_anchor": "middle"}
            parts.append(tag("text", short(value), class_="tick", **spot))
        parts += marks
        parts.append(tag("line", class_="axis", x1=_LEFT, x2=self.width - _RIGHT, y1=base, y2=base))
        if x_name:
            middle = {"x": (self.width + _LEFT - _RIGHT) // 2, "y": self.height - 3, "text_anchor": "middle"}
            parts.append(tag("text", x_name, class_="tick", **middle))
        box = {"viewBox": f"0 0 {self.width} {self.height}"}
        return tag("svg", *parts, class_=f"chart {form}".strip(), role="img", aria_label=label, **box)


def sparkline(values: Numbers) -> Html:
    """A probability over time in one line of text, with the level at which the side changes."""
    width, height = 110, 26
    step = (width - 6) / max(len(values) - 1, 1)
    points = " ".join(f"{_n(3 + k * step)},{_n(height - 3 - v * (height - 6))}" for k, v in enumerate(values))
    level = _n(height - 3 - 0.5 * (height - 6))
    parts = [
        tag("line", class_="grid", x1=0, x2=width, y1=level, y2=level),
        tag("polyline", class_="line mismatched", points=points),
    ]
    label = "mismatch probability by epoch: " + ", ".join(f"{v:.2f}" for v in values)
    return tag("svg", *parts, class_="spark", role="img", aria_label=label, viewBox=f"0 0 {width} {height}")


def ticks(low: float, high: float, most: int) -> list[float]:
    """Round values inside [low, high], at most `most` + 1 of them."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return [low] if math.isfinite(low) else []
    rough = (high - low) / most
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * m for m in (1, 2, 2.5, 5, 10) if unit * m >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


def _root_ticks(high: float) -> list[float]:
    """0 and round values that are about evenly spaced by their square roots."""
    return [0.0, *dict.fromkeys(ticks(0.0, high * share, most=2)[-1] for share in (0.06, 0.25, 0.56, 1.0))]


def short(value: float) -> str:
    """A tick's label."""
    if value and abs(value) < 1e-4:
        return f"{value:.0e}"
    text = f"{value:,.4f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
