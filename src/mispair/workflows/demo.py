"""The demonstration: one world, 60 % of its pairs mismatched, plain training against L2RM, one budget and seed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from mispair.config.load import load_config
from mispair.workflows.train import train

RATE = 0.6
_BUDGET = {"epochs": 14, "lr": 1e-3, "decay_at": [10]}
ROWS: dict[str, dict[str, Any]] = {
    "no mismatches (upper bound)": {"method": {"name": "plain", "loss": "infonce"}},
    "plain, triplet": {"method": {"name": "plain"}, "data": {"noise": {"rate": RATE}}},
    "plain, InfoNCE": {"method": {"name": "plain", "loss": "infonce"}, "data": {"noise": {"rate": RATE}}},
    "l2rm": {"method": {"name": "l2rm", "warmup_epochs": 3}, "data": {"noise": {"rate": RATE}}},
}


@dataclass(frozen=True)
class DemoRow:
    """What one training of the demonstration reached."""

    name: str
    summary: dict[str, Any]


def train_row(name: str, folder: Path, console: Console, pictures: int = 2000) -> DemoRow:
    """Train one of ROWS into `folder`."""
    config = load_config(between={"train": _BUDGET, **ROWS[name]}, sets=[f"data.scenes.pictures={pictures}"])
    result = train(config, folder, console=console, interval=10)
    if result.stopped:
        raise KeyboardInterrupt
    return DemoRow(name, result.summary)
