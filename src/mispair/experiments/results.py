"""What did the cells reach? Each finished run folder as figures, and figures over seeds as mean and spread."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mispair.errors import InputError
from mispair.experiments.grid import ABOUT, GALLERIES, Cell, same_noise
from mispair.ordinary_file import read_ordinary
from mispair.recall_keys import RECALLS
from mispair.runtime.run_folder import RunFolder


@dataclass(frozen=True)
class CellResult:
    """One finished cell."""

    galleries: tuple[tuple[str, dict[str, float]], ...]  # what was ranked, in words, and its recalls
    networks: int | None  # trained
    passes: float | None  # forward-backward passes over the pairs, all networks together
    forward_passes: float | None  # those that only judge
    noise: str | None
    injected: float | None
    called: float | None  # share of the pairs that the method treated as mismatched
    estimated: float | None
    lower: float | None  # of the interval around it
    upper: float | None
    auroc: float | None
    ece: float | None
    certain: float | None  # share of the pairs with p >= 0.99 that are mismatched
    rematched: float | None  # share of the transported mass on true partners
    code: str
    seconds: float
    pairs: int

    @property
    def rsum(self) -> float:
        return self.galleries[0][1]["rsum"]


@dataclass(frozen=True)
class Figure:
    """A mean over seeds and its sample standard deviation; no spread from a single seed."""

    mean: float
    spread: float | None
    count: int

    def text(self, digits: int = 1) -> str:
        spread = "" if self.spread is None else f" ± {self.spread:.{digits}f}"
        return f"{self.mean:.{digits}f}{spread}"


def figure(values: Sequence[float]) -> Figure | None:
    """Mean and standard deviation of some values; None where there are none, no deviation where there is one."""
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return Figure(mean, None, 1)
    return Figure(mean, math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1)), len(values))


def read_cell(folder: Path) -> CellResult | None:
    """The result of the run in `folder`; None where it is not finished."""
    run = RunFolder(folder)
    if not run.finished:
        return None
    try:
        summary = run.summary
        split = "test" if summary.get("test") else "dev"
        scored = [{"label": split, "metrics": summary[split]}]
        if (folder / GALLERIES).exists():
            scored = json.loads(read_ordinary(folder / GALLERIES))
        about, cost = _about(folder), summary["cost"]
        interval = summary.get("mismatch_rate_ci") or (None, None)
        return CellResult(
            galleries=tuple((one["label"], {key: float(one["metrics"][key]) for key in RECALLS}) for one in scored),
            networks=cost.get("networks_trained"),
            passes=_finite(cost.get("passes")),
            forward_passes=_finite(cost.get("forward_passes")),
            noise=summary["noise"]["hash"],
            injected=summary["noise"]["rate"],
            called=_finite(summary.get("called_mismatched")),
            estimated=summary.get("mismatch_rate"),
            lower=_finite(interval[0]),
            upper=_finite(interval[1]),
            **{name: _finite(summary.get("detection", {}).get(name)) for name in ("auroc", "ece", "certain")},
            rematched=_finite((summary.get("rematching") or about.get("rematching") or {}).get("true")),
            code=str(about.get("code", "unknown")),
            seconds=float(summary["seconds"]),
            pairs=int(summary["data"]["pairs"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(f"{run.summary_file} is damaged; remove that folder and run the experiment again") from None


def noise_problems(cells: Sequence[Cell]) -> list[str]:
    """Columns and seeds in which the rows did not meet the same mismatches."""
    met: dict[tuple[str, int], list[str | None]] = {}
    for cell in cells:
        result = read_cell(cell.folder)
        if result is not None:
            met.setdefault((cell.column, cell.seed), []).append(result.noise)
    return [
        f"column {column}, seed {seed}: the rows met different mismatches, so they cannot be compared"
        for (column, seed), hashes in met.items()
        if not same_noise(hashes)
    ]


def _finite(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _about(folder: Path) -> dict[str, Any]:
    try:
        about = json.loads(read_ordinary(folder / ABOUT))
    except (OSError, ValueError, RecursionError):
        return {}
    return about if isinstance(about, dict) else {}
