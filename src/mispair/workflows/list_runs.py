"""The runs of a folder: what each is, how far it came, what it reached."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mispair.config.load import load_config
from mispair.errors import InputError
from mispair.missing_path import does_not_exist, is_missing
from mispair.runtime.run_folder import CONFIG, RunFolder


def list_runs(folder: Path, left_out: Callable[[str], None]) -> list[dict[str, Any]]:
    """One entry per run, by name; `left_out` hears of those that cannot be read: they do not hide the others.

    Raises:
        InputError: no such folder, or no run in it that can be read.
    """
    if is_missing(folder):
        raise InputError(f"{does_not_exist(folder)}; expected a folder of runs ('mispair train' makes runs/)")
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; expected one that holds runs")
    listed, there = [], [path for path in sorted(folder.iterdir()) if RunFolder(path).begun]
    for path in there:
        try:
            listed.append(_describe(RunFolder(path)))
        except InputError as error:
            left_out(str(error))
    if there and not listed:
        raise InputError(f"no run in {folder} can be read")
    if not listed:
        raise InputError(f"{folder} holds no runs: no folder in it has a {CONFIG}")
    return listed


def _describe(run: RunFolder) -> dict[str, Any]:
    config, events, summary = load_config(run.config_file), run.epochs(), run.summary
    return {
        "run": run.name,
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


def _estimated_rate(summary: dict[str, Any]) -> float | None:
    """A number that stands alone: only where its interval says something and the pairs were not chosen by a fix."""
    supported = summary.get("conclusive") and not summary.get("mended")
    return summary.get("mismatch_rate") if supported else None
