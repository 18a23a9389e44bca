"""What a run folder tells about itself: recalls, losses, curves, the split's history, costs, alignments, hashes."""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mispair.auditing.audit_folder import AuditFolder
from mispair.auditing.fixing.chunks import sha256
from mispair.config.load import load_config
from mispair.config.schema import RunConfig
from mispair.errors import InputError
from mispair.functional.mismatch_rate import estimate_mismatch, normal_scores
from mispair.functional.mixture import MixtureFit, fit_mixture
from mispair.report.content import Costs, Curve, Flip, History, Losses, PairRow, Ranked, Recalls
from mispair.runtime.run_folder import CONFIG, RunFolder
from mispair.version import __version__
from mispair.workflows.report.evidence import coarser

Floats = NDArray[np.float64]
_BINS = 48
_CURVES = {  # key of a journal line -> name on the page, digits
    "loss": ("training loss", 2),
    "rate": ("share in the mismatched component", 3),
    "rematch": ("rematching loss", 2),
}


@dataclass(frozen=True)
class RunRecord:
    """What the page reads of a run, read once; none of it is necessary but the configuration."""

    files: RunFolder
    config: RunConfig
    summary: dict[str, Any]  # empty while the run is not finished
    epochs: list[dict[str, Any]]
    splits: dict[int, Path]  # epoch -> file

    @property
    def path(self) -> Path:
        return self.files.path


def open_run_folder(path: Path) -> RunRecord:
    """The run at `path`."""
    files = RunFolder(path)
    if not files.begun:
        raise InputError(
            f"{path} is neither a run nor an audit: it has no {CONFIG} and no {AuditFolder(path).facts_file.name}"
        )
    return RunRecord(files, load_config(files.config_file), files.summary, files.epochs(), files.splits())


def split_columns(run: RunRecord, epoch: int) -> dict[str, NDArray[Any]]:
    """The columns recorded at an epoch, by pair id: numbers, and where there are probabilities, such."""
    columns = run.files.split(epoch)
    kinds = {"signal": "f", "posterior": "f", "cost": "f", "mismatched": "b"}
    wrong = [name for name, kind in kinds.items() if name in columns and columns[name].dtype.kind != kind]
    if "cost" in columns and "mismatched" not in columns:  # whoever asked what pairs cost had told them apart
        wrong.append("mismatched")
    if not wrong:
        bounds = {"signal": (-1e300, 1e300), "posterior": (0.0, 1.0)}
        known = [name for name in bounds if name in columns]
        wrong = [n for n in known if not ((columns[n] >= bounds[n][0]) & (columns[n] <= bounds[n][1])).all()]
    if wrong:
        raise InputError(f"{run.splits[epoch]} is damaged ({', '.join(wrong)}); delete it, or train again")
    return columns


def recalls(run: RunRecord) -> list[Recalls]:
    """Of the finished run, or the best epoch so far."""
    reached = [Recalls(split, run.summary[split]) for split in ("dev", "test") if run.summary.get(split)]
    if not reached and run.epochs:
        best = max(run.epochs, key=lambda line: float(line["dev"]["rsum"]))
        reached.append(Recalls("dev", best["dev"]))
    return reached


def evaluated_on_clean(run: RunRecord) -> bool:
    """Whether dev and test are known to match: generated, or beside a train split that was damaged on purpose."""
    return run.config.data.path == "scenes" or run.config.data.noise is not None


def losses(run: RunRecord) -> Losses | None:
    """The last split's losses with the mixture fitted to them again."""
    if not run.splits:
        return None
    columns = split_columns(run, max(run.splits))
    if "signal" not in columns or "mismatched" not in columns:
        return None
    signal, wrong = columns["signal"].astype(np.float64), columns["mismatched"].astype(bool)
    counts, edges = np.histogram(signal, _BINS)
    called = np.histogram(signal[wrong], edges)[0]
    if "repaired" in columns:
        return _judged_by_others(run, signal, columns["repaired"].astype(np.float64), wrong, (counts, called, edges))
    family = run.config.method.mixture_family
    fit = fit_mixture(signal, family)
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
            f"matched pairs, one around {fit.means[1]:.2f} for mismatched ones. The training worked with the split"
            f" shown here, which called {wrong.mean():.1%} of the pairs mismatched; it is no estimate of how many are."
        )
    else:
        said = (
            "The losses do not show two groups, so the split the training worked with, which called"
            f" {wrong.mean():.1%} of the pairs mismatched, is arbitrary."
        )
    what = f"loss ({run.config.method.signal_name})".replace("_", " ")
    with np.errstate(invalid="ignore"):
        share = np.where(counts > 0, called / np.maximum(counts, 1), 0.0)
    return Losses(
        edges.tolist(), counts.tolist(), share.tolist(), grid.tolist(), (curves[0], curves[1]), cut, what, said
    )


def _judged_by_others(
    run: RunRecord,
    signal: NDArray[np.float64],
    repaired: NDArray[np.float64],
    wrong: NDArray[np.bool_],
    drawn: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]],
) -> Losses:
    """Given pairs beside as many mismatched on purpose as the run's rate allows, or this split's where it has none."""
    counts, called, edges = drawn
    here = estimate_mismatch(normal_scores(signal, repaired), np.arange(len(signal))).rate
    rate = float(run.summary.get("mismatch_rate", here))
    mismatched = rate * np.histogram(repaired.clip(edges[0], edges[-1]), edges)[0] * len(signal) / len(repaired)
    bounds, (given, wrongly, expected) = coarser(edges.tolist(), counts.tolist(), called.tolist(), mismatched.tolist())
    centres = [(a + b) / 2 for a, b in pairwise(bounds)]
    pair_of = ([max(g - e, 0.0) for g, e in zip(given, expected, strict=True)], expected)
    said = (
        "For every image other pairs predict what its text is like, and its own text is compared with that. Texts"
        f" of other images show how mismatched pairs compare; {rate:.1%} of the given pairs look like them."
    )
    cut = float(signal[wrong].min()) if wrong.any() else None
    share = [w / g if g else 0.0 for w, g in zip(wrongly, given, strict=True)]
    return Losses(bounds, given, share, centres, pair_of, cut, "disagreement", said)


def curves(run: RunRecord) -> list[Curve]:
    """Dev recalls and what the method logged, by epoch."""
    if not run.epochs:
        return []
    best = max(run.epochs, key=lambda line: float(line["dev"]["rsum"]))["epoch"] + 1
    warmup = run.config.method.warmup
    drawn = [_curve(run, "dev", "rsum", "dev rSum", 1, best, "best")]
    for key, (name, digits) in _CURVES.items():
        mark = (warmup + 0.5, "warm-up ends") if key == "loss" and warmup else (None, "")
        drawn.append(_curve(run, "train", key, name, digits, *mark))
    return [curve for curve in drawn if curve is not None]


def split_size(run: RunRecord) -> int:
    """How many pairs the first split that was kept divides."""
    return len(next(iter(split_columns(run, min(run.splits)).values())))


def history(run: RunRecord, pairs: Sequence[PairRow] | None, most: int = 8) -> History | None:
    """How the split changed from epoch to epoch. `pairs`: those trained on, in their order, where they are known."""
    if not run.splits:
        return None
    epochs = sorted(run.splits)
    read = [split_columns(run, epoch) for epoch in epochs]
    if not all("mismatched" in columns and "posterior" in columns for columns in read):
        return None
    if len({len(columns["mismatched"]) for columns in read}) != 1:
        raise InputError(f"{run.files.splits_folder} holds epochs of different data; delete the older ones")
    wrong = np.stack([columns["mismatched"].astype(bool) for columns in read])
    moved = wrong[1:] != wrong[:-1]
    flips = moved.sum(0)
    named = pairs if pairs is not None and len(pairs) == len(flips) else None
    order = np.argsort(-flips, kind="stable")[:most]
    listed = [
        Flip(
            f"{k} of training" if named is None else named[k].pair_id,
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


def costs(run: RunRecord) -> list[Costs]:
    """The transport cost of the given pairs, at the first and the last epoch that recorded it."""
    recorded = [epoch for epoch in sorted(run.splits) if "cost" in run.files.split_names(epoch)]
    if not recorded:
        return []
    chosen = sorted({recorded[0], recorded[-1]})
    read = {epoch: split_columns(run, epoch) for epoch in chosen}
    finite = np.concatenate([c["cost"][np.isfinite(c["cost"])] for c in read.values()])
    if not len(finite):
        return []
    edges = np.histogram_bin_edges(finite, 40, tuple(np.quantile(finite, [0.001, 0.999])))
    histograms = []
    for epoch, columns in read.items():
        wrong = columns["mismatched"].astype(bool)
        shares = [_share(columns["cost"][group], edges) for group in (~wrong, wrong)]
        phase = "early" if epoch == chosen[0] and len(chosen) > 1 else "late"
        histograms.append(Costs(f"{phase}, epoch {epoch + 1}", edges.tolist(), *shares))
    return histograms


def ranked(run: RunRecord) -> list[Ranked]:
    """The ranked refined alignments of the last epoch that wrote them."""
    names = (("transported", "Transported rows", False), ("untransported", "Untransported rows", True))
    epoch, sides = run.files.alignments()
    return [Ranked(f"{title}, epoch {epoch + 1}", sides[key], other) for key, title, other in names if sides.get(key)]


def provenance(run: RunRecord) -> list[tuple[str, str]]:
    """Names and hashes of what went in and what came out."""
    summary, config = run.summary, run.config
    facts = [
        ("run", str(run.path)),
        ("method and model", f"{config.method.name}, {config.model.name}"),
        ("seed", str(config.seed)),
    ]
    if "data" in summary:
        facts.append(("data", f"{summary['data']['name']}, {summary['data']['pairs']:,} pairs"))
        facts.append(("data hash", str(summary["data"]["hash"])))
    if "noise" in summary:
        facts.append(("noise", str(summary["noise"]["text"]).replace("`", "")))
    weights = run.files.model_file
    if weights.is_file():
        facts.append(("model hash", sha256(weights)))
    facts.append(("configuration hash", sha256(run.files.config_file)))
    if "seconds" in summary:
        steps = f", {summary['cost']['steps']:,} steps" if "cost" in summary else ""
        facts.append(("trained for", f"{summary['seconds']:.0f} s{steps}"))
    return facts


def versions() -> list[tuple[str, str]]:
    """What this page was made with."""
    import torch

    used = (("mispair", __version__), ("python", platform.python_version()), ("torch", str(torch.__version__)))
    listed = ", ".join(f"{name} {version}" for name, version in (*used, ("numpy", np.__version__)))
    return [("versions", listed), ("machine", f"{platform.system()} {platform.machine()}")]


def _share(values: NDArray[Any], edges: NDArray[Any]) -> list[float]:
    counts = np.histogram(np.clip(values[np.isfinite(values)], edges[0], edges[-1]), edges)[0]
    shares: list[float] = (counts / max(counts.sum(), 1)).tolist()
    return shares


def _density(fit: MixtureFit, k: int, x: Floats) -> Floats:
    """The density of component `k` of the fit at x, on the normalised scale."""
    first, second = fit.parameters[k]
    if fit.family == "gaussian":
        return np.exp(-0.5 * ((x - first) / second) ** 2) / (second * math.sqrt(2 * math.pi))
    inside = np.clip(x, 1e-3, 1 - 1e-3)
    norm = math.lgamma(first + second) - math.lgamma(first) - math.lgamma(second)
    density: Floats = np.exp((first - 1) * np.log(inside) + (second - 1) * np.log1p(-inside) + norm)
    return density


def _curve(
    run: RunRecord, part: str, key: str, name: str, digits: int, mark: float | None, mark_name: str
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
