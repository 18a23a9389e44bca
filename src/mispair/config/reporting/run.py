"""What a run folder tells about itself: recalls, losses, curves, the split's history, costs, alignments, hashes."""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mispair.config.load import load_config
from mispair.config.schema import RunConfig
from mispair.errors import InputError
from mispair.functional.mixture import MixtureFit, fit_beta_mixture, fit_gaussian_mixture
from mispair.report.content import Costs, Curve, Flip, History, Losses, Pair, Ranked, Recalls
from mispair.version import __version__

Floats = NDArray[np.float64]
_BINS = 48
_CURVES = {  # key of a journal line -> name on the page, digits
    "loss": ("training loss", 2),
    "rate": ("estimated mismatch rate", 3),
    "rematch": ("rematching loss", 2),
}


@dataclass(frozen=True)
class RunFolder:
    """The files of a run that the page reads, none of them necessary but the configuration."""

    path: Path
    config: RunConfig
    summary: dict[str, Any]  # metrics.json
    epochs: list[dict[str, Any]]  # epoch lines of metrics.jsonl, the last line of each epoch
    splits: dict[int, Path]  # epoch -> file


def open_run_folder(path: Path) -> RunFolder:
    """The run at `path`."""
    if not (path / "config.yaml").is_file():
        raise InputError(f"{path} is neither a run nor an audit: it has no config.yaml and no audit.json")
    files = {int(f.stem.removeprefix("epoch-")): f for f in sorted((path / "split.parquet").glob("epoch-*.parquet"))}
    return RunFolder(
        path, load_config(path / "config.yaml"), _json(path / "metrics.json"), _journal(path / "metrics.jsonl"), files
    )


def split_columns(run: RunFolder, epoch: int) -> dict[str, NDArray[Any]]:
    """The columns recorded at an epoch, by pair id."""
    try:
        table = pq.read_table(run.splits[epoch])
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{run.splits[epoch]} is damaged ({error}); delete it, or train again") from None
    return {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}


def recalls(run: RunFolder) -> list[Recalls]:
    """Of the finished run, or the best epoch so far."""
    found = [Recalls(split, run.summary[split]) for split in ("dev", "test") if run.summary.get(split)]
    if not found and run.epochs:
        best = max(run.epochs, key=lambda line: float(line["dev"]["rsum"]))
        found.append(Recalls("dev", best["dev"]))
    return found


def losses(run: RunFolder) -> Losses | None:
    """The last split's losses with the mixture fitted to them again."""
    if not run.splits:
        return None
    columns = split_columns(run, max(run.splits))
    if "signal" not in columns or "mismatched" not in columns:
        return None
    signal, wrong = columns["signal"].astype(np.float64), columns["mismatched"].astype(bool)
    family = getattr(run.config.method, "mixture", "beta")
    fit = (fit_gaussian_mixture if family == "gaussian" else fit_beta_mixture)(signal)
    counts, edges = np.histogram(signal, _BINS)
    called = np.histogram(signal[wrong], edges)[0]
    grid = np.linspace(edges[0], edges[-1], 161)
    width = len(signal) * float(edges[1] - edges[0])
    inner = (grid - fit.low) / ((fit.high - fit.low) or 1.0)
    curves = [
        (width * weight * _density(fit, k, inner) / ((fit.high - fit.low) or 1.0)).tolist()
        for k, weight in enumerate(fit.weights)
    ]
    cut = fit.threshold if math.isfinite(fit.threshold) else None
    if fit.bimodal:
        said = (
            "Pairs that match are learned early, so their loss falls first. Two "
            f"{'Gauss' if family == 'gaussian' else 'Beta'} components were fitted: one around {fit.means[0]:.2f} for "
            f"matched pairs, one around {fit.means[1]:.2f} for mismatched ones, which hold {fit.mismatch_rate:.1%}."
        )
    else:
        said = "The losses do not show two groups: the split below is a guess."
    what = f"loss ({getattr(run.config.method, 'signal', 'per pair')})".replace("_", " ")
    with np.errstate(invalid="ignore"):
        share = np.where(counts > 0, called / np.maximum(counts, 1), 0.0)
    return Losses(
        edges.tolist(), counts.tolist(), share.tolist(), grid.tolist(), (curves[0], curves[1]), cut, what, said
    )


def curves(run: RunFolder) -> list[Curve]:
    """Dev recalls and what the method logged, by epoch."""
    if not run.epochs:
        return []
    best = max(run.epochs, key=lambda line: float(line["dev"]["rsum"]))["epoch"] + 1
    warmup = getattr(run.config.method, "warmup_epochs", None)
    found = [_curve(run, "dev", "rsum", "dev rSum", 1, best, "best")]
    for key, (name, digits) in _CURVES.items():
        mark = (warmup + 0.5, "warm-up ends") if key == "loss" and warmup else (None, "")
        found.append(_curve(run, "train", key, name, digits, *mark))
    return [curve for curve in found if curve is not None]


def history(run: RunFolder, pairs: Sequence[Pair] | None, most: int = 8) -> History | None:
    """How the split changed from epoch to epoch."""
    if not run.splits:
        return None
    epochs = sorted(run.splits)
    read = [split_columns(run, epoch) for epoch in epochs]
    if not all("mismatched" in columns and "posterior" in columns for columns in read):
        return None
    if len({len(columns["mismatched"]) for columns in read}) != 1:
        raise InputError(f"{run.path / 'split.parquet'} holds epochs of different data; delete the older ones")
    wrong = np.stack([columns["mismatched"].astype(bool) for columns in read])
    moved = wrong[1:] != wrong[:-1]
    flips = moved.sum(0)
    named = pairs if pairs is not None and len(pairs) == len(flips) else None
    order = np.argsort(-flips, kind="stable")[:most]
    listed = [
        Flip(
            str(k) if named is None else named[k].pair_id,
            "" if named is None else named[k].caption,
            [float(columns["posterior"][k]) for columns in read],
            int(flips[k]),
        )
        for k in order
        if flips[k] > 0
    ]
    return History(
        epochs=[epoch + 1 for epoch in epochs],
        mismatched=wrong.mean(1).tolist(),
        to_matched=[0, *(moved & ~wrong[1:]).sum(1).tolist()],
        to_mismatched=[0, *(moved & wrong[1:]).sum(1).tolist()],
        never=int((flips == 0).sum()),
        pairs=wrong.shape[1],
        most=tuple(listed),
    )


def costs(run: RunFolder) -> list[Costs]:
    """The transport cost of the given pairs, at the first and the last epoch that recorded it."""
    recorded = [epoch for epoch in sorted(run.splits) if "cost" in pq.read_schema(run.splits[epoch]).names]
    if not recorded:
        return []
    chosen = sorted({recorded[0], recorded[-1]})
    read = {epoch: split_columns(run, epoch) for epoch in chosen}
    finite = np.concatenate([c["cost"][np.isfinite(c["cost"])] for c in read.values()])
    if not len(finite):
        return []
    edges = np.histogram_bin_edges(finite, 40, tuple(np.quantile(finite, [0.001, 0.999])))
    found = []
    for epoch, columns in read.items():
        wrong = columns["mismatched"].astype(bool)
        shares = [_share(columns["cost"][group], edges) for group in (~wrong, wrong)]
        phase = "early" if epoch == chosen[0] and len(chosen) > 1 else "late"
        found.append(Costs(f"{phase}, epoch {epoch + 1}", edges.tolist(), *shares))
    return found


def ranked(run: RunFolder) -> list[Ranked]:
    """The ranked refined alignments of the last epoch that wrote them."""
    epochs = _json(run.path / "alignment.json").get("epochs", {})
    if not epochs:
        return []
    last = max(epochs, key=int)
    names = (("transported", "Transported rows", False), ("untransported", "Untransported rows", True))
    return [
        Ranked(f"{title}, epoch {int(last) + 1}", epochs[last][key], other)
        for key, title, other in names
        if epochs[last].get(key)
    ]


def provenance(run: RunFolder) -> list[tuple[str, str]]:
    """Names and hashes of what went in and what came out."""
    summary, config = run.summary, run.config
    found = [
        ("run", str(run.path)),
        ("method and model", f"{config.method.name}, {config.model.name}"),
        ("seed", str(config.seed)),
    ]
    if "data" in summary:
        found.append(("data", f"{summary['data']['name']}, {summary['data']['pairs']:,} pairs"))
        found.append(("data hash", str(summary["data"]["hash"])))
    if "noise" in summary:
        found.append(("noise", str(summary["noise"]["text"]).replace("`", "")))
    weights = run.path / "model.safetensors"
    if weights.is_file():
        with weights.open("rb") as file:
            found.append(("model hash", _sha256(file)))
    found.append(("configuration hash", hashlib.sha256((run.path / "config.yaml").read_bytes()).hexdigest()))
    if "seconds" in summary:
        steps = f", {summary['cost']['steps']:,} steps" if "cost" in summary else ""
        found.append(("trained for", f"{summary['seconds']:.0f} s{steps}"))
    return found


def versions() -> list[tuple[str, str]]:
    """What this page was made with."""
    import torch

    used = (("mispair", __version__), ("python", platform.python_version()), ("torch", str(torch.__version__)))
    listed = ", ".join(f"{name} {version}" for name, version in (*used, ("numpy", np.__version__)))
    return [("versions", listed), ("machine", f"{platform.system()} {platform.machine()}")]


def _sha256(file: Any) -> str:
    digest = hashlib.sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


def _share(values: NDArray[Any], edges: NDArray[Any]) -> list[float]:
    counts = np.histogram(np.clip(values[np.isfinite(values)], edges[0], edges[-1]), edges)[0]
    shares: list[float] = (counts / max(counts.sum(), 1)).tolist()
    return shares


def _density(fit: MixtureFit, k: int, x: Floats) -> Floats:
    """Of component `k` on the normalised scale."""
    first, second = fit.parameters[k]
    if fit.family == "gaussian":
        return np.exp(-0.5 * ((x - first) / second) ** 2) / (second * math.sqrt(2 * math.pi))
    inside = np.clip(x, 1e-3, 1 - 1e-3)
    norm = math.lgamma(first + second) - math.lgamma(first) - math.lgamma(second)
    density: Floats = np.exp((first - 1) * np.log(inside) + (second - 1) * np.log1p(-inside) + norm)
    return density


def _curve(
    run: RunFolder, part: str, key: str, name: str, digits: int, mark: float | None, mark_name: str
) -> Curve | None:
    known = [
        (line["epoch"] + 1, float(line[part][key]))
        for line in run.epochs
        if isinstance(line.get(part), dict) and line[part].get(key) is not None
    ]
    if not known:
        return None
    epochs, values = zip(*known, strict=True)
    return Curve(name, epochs, values, mark, mark_name, digits)


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InputError(f"{path} is damaged: it is not JSON; train or evaluate the run again") from None
    return content if isinstance(content, dict) else {}


def _journal(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        return []
    found: dict[int, dict[str, Any]] = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue  # a kill can cut the last line; it is written again on resume
        if isinstance(event, dict) and event.get("event") == "epoch":
            found[int(event["epoch"])] = event
    return [found[epoch] for epoch in sorted(found)]
