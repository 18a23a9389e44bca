"""`mispair runs`: the runs of a folder, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from mispair.errors import InputError


def runs(
    folder: Path = typer.Argument(Path("runs"), help="A folder that holds run folders."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of the table."),
) -> None:
    """Compare runs in one table: what they are, how far they came, what they reached."""
    import json

    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; 'mispair train' makes runs/ when it first trains")
    found = [_read(path.parent) for path in sorted(folder.glob("*/config.yaml"))]
    if not found:
        raise InputError(f"{folder} holds no runs: no folder in it has a config.yaml")
    if as_json:
        typer.echo(json.dumps(found))
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=f"{len(found)} runs in {escape(str(folder))}", title_justify="left")
    for heading in (
        "run",
        "method",
        "model",
        "noise",
        "dev rSum",
        "test rSum",
        "estimated rate",
        "networks",
        "passes",
        "epochs",
        "",
    ):
        table.add_column(heading, justify="left" if heading in ("run", "method", "model", "") else "right")
    for run in sorted(found, key=lambda r: -(r["test_rsum"] or r["dev_rsum"] or 0)):
        table.add_row(
            escape(run["run"]),
            run["method"],
            run["model"],
            f"{_number(run['noise'], 2)} {(run['protocol'] or '').removesuffix(' protocol')}".strip(),
            _number(run["dev_rsum"], 1),
            _number(run["test_rsum"], 1),
            _number(run["estimated_rate"], 3),
            _number(run["networks"], 0),
            _number(run["passes"], 1),
            f"{run['epochs_done']}/{run['epochs']}",
            "" if run["finished"] else "[yellow]unfinished[/yellow]",
        )
    Console().print(table)


def _read(folder: Path) -> dict[str, Any]:
    import json

    from mispair.config.assemble import read_summary
    from mispair.config.load import load_config

    config = load_config(folder / "config.yaml")
    events = []
    journal = folder / "metrics.jsonl"
    if journal.exists():
        for line in journal.read_text(encoding="utf-8").splitlines():
            try:
                event = json.loads(line)
            except json.JSONDecodeError:
                continue  # a kill can cut the last line; it is written again on resume
            if event.get("event") == "epoch":
                events.append(event)
    summary = read_summary(folder)
    return {
        "run": folder.name,
        "method": config.method.name,
        "model": config.model.name,
        "noise": summary.get("noise", {}).get("rate") or (config.data.noise.rate if config.data.noise else None),
        "dev_rsum": max((e["dev"]["rsum"] for e in events), default=None),
        "test_rsum": summary.get("test", {}).get("rsum"),
        "estimated_rate": summary.get("mismatch_rate"),
        "networks": summary.get("cost", {}).get("networks_scored"),
        "passes": summary.get("cost", {}).get("passes"),
        "protocol": summary.get("noise", {}).get("protocol"),
        "epochs_done": len({e["epoch"] for e in events}),
        "epochs": config.train.epochs,
        "finished": bool(summary),
    }


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
