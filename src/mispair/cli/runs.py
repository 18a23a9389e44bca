"""`mispair runs`: the runs of a folder, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mispair.counted import counted
from mispair.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

_WIDE = 110  # columns of a terminal that holds everything


def runs(
    folder: Path = typer.Argument(Path("runs"), help="A folder that holds run folders."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of the table."),
) -> None:
    """Compare runs in one table: what they are, how far they came, what they reached."""
    import json

    from mispair.runtime.run_folder import CONFIG, RunFolder

    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; 'mispair train' makes runs/ when it first trains")
    listed, there = [], [path for path in sorted(folder.iterdir()) if RunFolder(path).begun]
    for path in there:
        try:
            listed.append(_read(path))
        except InputError as error:  # one damaged run does not hide the others
            typer.echo(f"left out: {error}", err=True)
    if there and not listed:
        raise InputError(f"no run in {folder} can be read")
    if not listed:
        raise InputError(f"{folder} holds no runs: no folder in it has a {CONFIG}")
    if as_json:
        typer.echo(json.dumps(listed))
        return
    from rich.console import Console

    console = Console()
    console.print(_table(listed, str(folder), wide=console.width >= _WIDE))


def _table(listed: list[dict[str, Any]], folder: str, wide: bool) -> Table:
    """One row per run, best first. A narrow terminal gets fewer columns: a figure is never cut."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    title = f"{counted(len(listed), 'run')} in {escape(folder)}"
    table = Table(title=title, title_justify="left", box=box.HEAVY_HEAD if wide else box.SIMPLE_HEAD)
    rows = []
    for run in sorted(listed, key=lambda r: -(r["test_rsum"] or r["dev_rsum"] or 0)):
        protocol = (run["protocol"] or "").removesuffix(" protocol") if wide else ""
        rows.append(
            {
                "run": escape(run["run"]),
                "method": run["method"],
                "model": run["model"],
                "noise": f"{_number(run['noise'], 2)} {protocol}".strip(),
                "dev rSum": _number(run["dev_rsum"], 1),
                "test rSum": _number(run["test_rsum"], 1),
                "est. rate": _number(run["estimated_rate"], 3),
                **({"networks": _number(run["networks"], 0), "passes": _number(run["passes"], 1)} if wide else {}),
                "epochs": f"{run['epochs_done']}/{run['epochs']}{'' if run['finished'] else ' ...'}",
            }
        )
    for heading in rows[0]:
        words = heading in ("run", "method", "model")
        shown = heading if wide else heading.replace(" rSum", "").replace("est. ", "")
        table.add_column(shown, justify="left" if words else "right", no_wrap=heading != "run", overflow="fold")
    for row in rows:
        table.add_row(*row.values())
    if not all(run["finished"] for run in listed):
        table.caption, table.caption_justify = "... not finished", "left"
    return table


def _read(folder: Path) -> dict[str, Any]:
    from mispair.config.load import load_config
    from mispair.runtime.run_folder import RunFolder

    run = RunFolder(folder)
    config, events, summary = load_config(run.config_file), run.epochs(), run.summary
    return {
        "run": folder.name,
        "method": config.method.name,
        "model": config.model.name,
        "noise": summary.get("noise", {}).get("rate") or (config.data.noise.rate if config.data.noise else None),
        "dev_rsum": max((e["dev"]["rsum"] for e in events), default=None),
        "test_rsum": summary.get("test", {}).get("rsum"),
        "estimated_rate": _estimated_rate(summary),
        "networks": summary.get("cost", {}).get("networks_scored"),
        "passes": summary.get("cost", {}).get("passes"),
        "protocol": summary.get("noise", {}).get("protocol"),
        "epochs_done": len(events),
        "epochs": config.train.epochs,
        "finished": bool(summary),
    }


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _estimated_rate(summary: dict[str, Any]) -> float | None:
    """A number that stands alone: only where its interval says something and the pairs were not chosen by a fix."""
    supported = summary.get("conclusive") and not summary.get("mended")
    return summary.get("mismatch_rate") if supported else None
