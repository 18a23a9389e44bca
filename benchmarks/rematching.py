"""Which cost rematches best? `python -m benchmarks.rematching [--data F8K] [--rates 0.2,0.4,0.6,0.8]`

Trains l2rm once per cost and rate with one budget and seed, and prints the share of the transported mass that lands on
true partners (captions true of the picture for scenes, its own captions elsewhere), what a random plan would reach, and
the rSum on test. Minutes on scenes, hours on real data; finished cells are kept in --out and not run again.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from mispair.config.load import load_config
from mispair.workflows.train import train

COSTS = {
    "learned": ["method.cost.kind=learned"],
    "paper": ["method.cost.kind=paper", "method.cost.rate=0.01"],
    "score": ["method.cost.kind=score"],
    "cosine": ["method.cost.kind=cosine"],
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rematching", description=__doc__)
    parser.add_argument("--data", default="scenes")
    parser.add_argument("--rates", default="0.2,0.4,0.6,0.8")
    parser.add_argument("--costs", default=",".join(COSTS))
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--out", type=Path, default=Path("runs/rematching"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    table = Table(title=f"share of rematched mass on true partners, {Path(arguments.data).name}", title_justify="left")
    for heading in ("rate", "cost", "true", "random plan", "AUROC", "estimated rate", "test rSum"):
        table.add_column(heading, justify="right")
    console = Console()
    for rate in map(float, arguments.rates.split(",")):
        for cost in arguments.costs.split(","):
            with console.status(f"rate {rate}, {cost}"):
                cell = _cell(arguments, rate, cost)
            table.add_row(
                f"{rate:.1f}",
                cost,
                f"{100 * cell['true']:.1f} %",
                f"{100 * cell['chance']:.2f} %",
                f"{cell['auroc']:.3f}",
                f"{cell['rate']:.2f}",
                f"{cell['rsum']:.1f}",
            )
    console.print(table)


def _cell(arguments: argparse.Namespace, rate: float, cost: str) -> dict[str, float]:
    folder = arguments.out / f"{Path(arguments.data).name}-{rate}-{cost}"
    done = folder / "cell.json"
    if done.exists():
        found: dict[str, float] = json.loads(done.read_text())
        return found
    sets = [f"data.path={arguments.data}", f"data.noise.rate={rate}", "method.warmup_epochs=4"]
    budget = [
        f"train.epochs={arguments.epochs}",
        f"train.lr={arguments.lr}",
        f"train.decay_at=[{arguments.epochs - 4}]",
    ]
    config = load_config(None, [*sets, *COSTS[cost], *budget])
    summary = train(config, folder).summary
    cell = {
        **(summary.get("rematching") or {"true": float("nan"), "chance": float("nan")}),
        "auroc": summary["detection"]["auroc"],
        "rate": summary["mismatch_rate"],
        "rsum": summary["test"]["rsum"],
    }
    done.write_text(json.dumps(cell))
    return cell


if __name__ == "__main__":
    main()
