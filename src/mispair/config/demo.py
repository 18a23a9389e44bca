"""The demonstration: one world, 60 % of its pairs mismatched, plain training against L2RM, one budget and seed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mispair.config.assemble import assemble
from mispair.config.finish import finish
from mispair.config.load import load_config
from mispair.config.rematching import Rematching, judge_rematching
from mispair.runtime.engine import Engine
from mispair.runtime.journal import Journal

RATE = 0.6
_BUDGET = {"epochs": 14, "lr": 1e-3, "decay_at": [10]}
ROWS: dict[str, dict[str, Any]] = {
    "no mismatches (upper bound)": {"method": {"name": "plain", "loss": "infonce"}},
    "plain, triplet": {"method": {"name": "plain"}, "data": {"noise": {"rate": RATE}}},
    "plain, InfoNCE": {"method": {"name": "plain", "loss": "infonce"}, "data": {"noise": {"rate": RATE}}},
    "l2rm": {"method": {"name": "l2rm", "warmup_epochs": 3}, "data": {"noise": {"rate": RATE}}},
}


@dataclass(frozen=True)
class Row:
    """What one training of the demonstration reached."""

    name: str
    summary: dict[str, Any]
    rematching: Rematching | None


def train_row(name: str, folder: Path, journal: Journal, pictures: int = 2000) -> Row:
    """Train one of ROWS into `folder`."""
    config = load_config(between={"train": _BUDGET, **ROWS[name]}, sets=[f"data.scenes.pictures={pictures}"])
    with journal:
        run = assemble(config, folder, Engine(config.engine), journal)
        if run.trainer.fit().stopped:
            raise KeyboardInterrupt
    return Row(name, finish(run), judge_rematching(run))
