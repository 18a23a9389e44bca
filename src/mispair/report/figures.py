"""The figures: each takes one part of the content and draws it."""

from __future__ import annotations

from collections.abc import Sequence

from mispair.report.charts import Axes, sparkline
from mispair.report.content import Costs, Curve, History, Losses, Ranked
from mispair.report.html import Html, join, tag
from mispair.report.text import clamped

_TALL = 12  # a highest bar this many times the middle one hides the others


def legend(*entries: tuple[str, str]) -> Html:
    """(class, name) of what is drawn."""
    return tag("p", *[tag("span", tag("i", class_=f"key {kind}"), name) for kind, name in entries], class_="legend")


def losses(part: Losses) -> Html:
    """The histogram, the two components and the cut."""
    top = max([*part.counts, *part.curves[0], *part.curves[1], 1.0]) * 1.08
    seen = sorted(count for count in part.counts if count > 0)
    root = bool(seen) and top > _TALL * seen[len(seen) // 2]
    sides = ["mismatched" if share > 0.5 else "matched" for share in part.mismatched]
    label = f"Histogram of {part.what} with two fitted components. {part.said}"
    name = f"{part.what}; heights by square root" if root else part.what
    drawn = []
    for form, width, height in (("wide", 760, 280), ("narrow", 360, 230)):
        axes = Axes((part.edges[0], part.edges[-1]), (0.0, top), width, height, root)
        marks = [
            axes.bars(part.edges, part.counts, [f"bar {side}" for side in sides]),
            axes.line(part.grid, part.curves[0], "matched"),
            axes.line(part.grid, part.curves[1], "mismatched dashed"),
        ]
        if part.threshold is not None:
            marks.append(axes.rule(part.threshold, "the split"))
        drawn.append(axes.draw(label, *marks, x_name=name, form=form))
    return join(
        [
            drawn,
            legend(
                ("bar matched", "called matched"),
                ("bar mismatched", "called mismatched"),
                ("line matched", "matched component"),
                ("line mismatched dashed", "mismatched component"),
            ),
        ]
    )


def curve(part: Curve) -> Html:
    """One quantity over epochs."""
    low, high = min(part.values), max(part.values)
    margin = (high - low) * 0.08 or abs(high) * 0.1 or 1.0
    first, last = part.epochs[0], part.epochs[-1]
    axes = Axes((first, last if last > first else first + 1), (low - margin, high + margin), height=180)
    marks = [axes.line(part.epochs, part.values, "ink"), axes.dots(part.epochs, part.values, "dot ink")]
    if part.mark is not None:
        marks.insert(0, axes.rule(part.mark, part.mark_name))
    label = f"{part.name} by epoch, from {part.values[0]:.{part.digits}f} to {part.values[-1]:.{part.digits}f}"
    caption = tag("figcaption", tag("b", part.name), f" {part.values[-1]:,.{part.digits}f} at the end")
    return tag("figure", caption, axes.draw(label, *marks, x_name="epoch", x_ticks=_epoch_ticks(part.epochs)))


def flips(part: History) -> Html:
    """How many pairs changed sides at each epoch, both ways."""
    moved = [*part.to_matched, *part.to_mismatched]
    epochs = [float(e) for e in part.epochs]
    axes = Axes((epochs[0] - 0.6, epochs[-1] + 0.6), (0.0, max(*moved, 1) * 1.1), height=190)
    marks = []
    for shift, values, side in ((-0.4, part.to_matched, "matched"), (0.0, part.to_mismatched, "mismatched")):
        for epoch, value in zip(epochs, values, strict=True):
            marks.append(axes.bars([epoch + shift, epoch + shift + 0.4], [float(value)], f"bar {side}"))
    label = f"Pairs that changed sides by epoch; {part.never:,} of {part.pairs:,} never did"
    drawing = axes.draw(label, *marks, x_name="epoch", x_ticks=_epoch_ticks(epochs))
    names = legend(("bar matched", "now called matched"), ("bar mismatched", "now called mismatched"))
    return tag("figure", tag("figcaption", tag("b", "Pairs that changed sides")), drawing, names)


def share(part: History) -> Html:
    """The share called mismatched at each epoch."""
    epochs = [float(e) for e in part.epochs]
    axes = Axes((epochs[0] - 0.6, epochs[-1] + 0.6), (0.0, 1.0), height=190)
    marks = []
    for epoch, value in zip(epochs, part.mismatched, strict=True):
        marks.append(axes.bars([epoch - 0.4, epoch + 0.4], [1.0], "bar matched"))
        marks.append(axes.bars([epoch - 0.4, epoch + 0.4], [value], "bar mismatched"))
    label = f"Share called mismatched by epoch, at the end {part.mismatched[-1]:.1%}"
    drawing = axes.draw(label, *marks, x_name="epoch", x_ticks=_epoch_ticks(epochs))
    names = legend(("bar matched", "called matched"), ("bar mismatched", "called mismatched"))
    return tag("figure", tag("figcaption", tag("b", "Share of the pairs")), drawing, names)


def undecided(part: History) -> Html:
    """The pairs that changed sides most often, each with its history."""
    rows = [
        tag(
            "li",
            sparkline(flip.posterior),
            tag("div", clamped(flip.caption, 160), tag("small", f"pair {flip.pair_id}, changed {_times(flip.flips)}")),
        )
        for flip in part.most
    ]
    return tag("ol", *rows, class_="undecided")


def costs(parts: list[Costs]) -> Html:
    """Early and late, side by side, on the same axes."""
    top = max(max([*p.matched, *p.mismatched]) for p in parts) * 1.08 or 1.0
    drawn = []
    for part in parts:
        axes = Axes((part.edges[0], part.edges[-1]), (0.0, top), height=200)
        marks = [
            axes.steps(part.edges, part.matched, "matched"),
            axes.steps(part.edges, part.mismatched, "mismatched dashed"),
        ]
        label = f"Transport cost of matched and mismatched pairs, {part.title}"
        drawing = axes.draw(label, *marks, x_name="transport cost of the given pair")
        drawn.append(tag("figure", tag("figcaption", tag("b", part.title)), drawing))
    names = legend(("area matched", "called matched"), ("area mismatched dashed", "called mismatched"))
    return join([tag("div", *drawn, class_="figures"), names])


def ranked(parts: list[Ranked]) -> Html:
    """The ranked refined alignments of transported and untransported rows."""
    drawn = []
    for part in parts:
        edges = [k + 0.5 for k in range(len(part.values) + 1)]
        axes = Axes((edges[0], edges[-1]), (0.0, max([*part.values, 1e-9]) * 1.1), height=190)
        side = "mismatched" if part.mismatched else "matched"
        label = f"{part.title}: the largest holds {part.values[0]:.1%} of the mass of a row"
        drawing = axes.draw(label, axes.bars(edges, part.values, f"bar {side}"), x_name="rank of the candidate")
        first = f" the first holds {part.values[0]:.1%}"
        drawn.append(tag("figure", tag("figcaption", tag("b", part.title), first), drawing))
    return tag("div", *drawn, class_="figures")


def _times(count: int) -> str:
    return "once" if count == 1 else "twice" if count == 2 else f"{count} times"


def _epoch_ticks(epochs: Sequence[float]) -> list[float]:
    """Whole epochs, at most eight of them."""
    first, last = int(min(epochs)), int(max(epochs))
    step = max(1, -(-(last - first) // 7))
    return [float(e) for e in range(first, last + 1, step)]
