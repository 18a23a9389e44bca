"""What every method reaches on scenes with 60 % of the pairs mismatched, at one budget: `--only quality`, minutes.

The runs are those of configs/demo: same data, noise, backbone, epochs, batches, rates and seed.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from mispair.config.load import load_config
from mispair.methods import about_method, method_names
from mispair.workflows.train import train

DEMO = Path(__file__).parents[1] / "configs" / "demo"


@dataclass(frozen=True)
class Reached:
    """What one training came to."""

    rsum: float
    auroc: float | None  # of telling mismatched pairs, where the method judges pairs
    passes: float  # forward-backward over the pairs, all networks together
    forward: float  # without gradient
    networks: int
    seconds: float

    @property
    def cost(self) -> float:
        """Passes, one without gradient counting a third."""
        return self.passes + self.forward / 3


def reach(method: str, folder: Path) -> Reached:
    """Train configs/demo/METHOD-vse.yaml into `folder` and score its best epoch on test."""
    config = load_config(DEMO / f"{method}-vse.yaml")
    summary = train(config, folder).summary
    cost = summary["cost"]
    return Reached(
        summary["test"]["rsum"],
        summary.get("detection", {}).get("auroc"),
        cost["passes"],
        cost["forward_passes"],
        cost["networks_scored"],
        summary["seconds"],
    )


def show(found: dict[str, Reached]) -> Table:
    """One row per method, costs beside the plain one's and beside what the method says of itself."""
    table = Table(title="scenes, 60 % mismatched, image protocol, test", title_justify="left")
    for heading in ("method", "rSum", "AUROC", "networks", "passes", "forward only", "cost", "stated", "seconds"):
        table.add_column(heading, justify="left" if heading == "method" else "right")
    for name, row in found.items():
        stated = about_method(name).cost if name in method_names() else 1.0
        table.add_row(
            name,
            f"{row.rsum:.1f}",
            "" if row.auroc is None else f"{row.auroc:.3f}",
            str(row.networks),
            f"{row.passes:.1f}",
            f"{row.forward:.1f}",
            f"{row.cost / found['plain'].cost:.2f}x",
            f"{stated:.1f}x",
            f"{row.seconds:.0f}",
        )
    return table


def report(console: Console) -> int:
    """Train all, print the table; how many robust methods do not beat plain."""
    found: dict[str, Reached] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name in method_names():
            with console.status(f"quality: {name}"):
                found[name] = reach(name, Path(scratch) / name)
    console.print(show(found))
    return sum(row.rsum <= found["plain"].rsum for name, row in found.items() if name != "plain")
