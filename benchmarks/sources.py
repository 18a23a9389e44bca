"""Where each figure of the README comes from: the command that makes it, printed at the end of `make bench`."""

from __future__ import annotations

from rich.table import Table

# Heading of the README, what stands there, and what makes it.
SOURCES = (
    ("What `make demo` prints", "the table of the demo, its AUROC, rate and rematched mass", "make demo"),
    ("On real photographs", "recalls of all methods", "mispair experiments run main --data f8k -o main --seeds 3"),
    (
        "On real photographs",
        "L2RM without siblings",
        "mispair experiments run variants --data f8k -o variants --only row=no-siblings",
    ),
    (
        "One caption per picture",
        "all methods and oracles",
        "mispair experiments run one-caption --data f8k-one -o one-caption --seeds 3",
    ),
    ("What it does", "networks and cost of the methods", "python -m benchmarks --only quality"),
    ("How fast", "transport, mixture, ranks, reading", "python -m benchmarks --only transport,mixture,ranks,data"),
    ("How fast", "encoders (docs/encoders.md)", "python -m benchmarks --only encoders"),
    ("How fast", "backbones (docs/backbones.md)", "python -m benchmarks --only models"),
)


def show() -> Table:
    table = Table(title="Where the figures of the README come from", title_justify="left")
    for heading in ("under", "figures", "command"):
        table.add_column(heading, overflow="fold")
    for row in SOURCES:
        table.add_row(*row)
    return table
