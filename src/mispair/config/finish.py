"""After the last epoch: score the best model on test, write `metrics.json` and the model card."""

from __future__ import annotations

import json
from typing import Any

from mispair.config.assemble import Assembly, load_run
from mispair.config.card import model_card
from mispair.config.polishing import polish_stand_ins
from mispair.config.rematching import ranked_alignments
from mispair.config.splits import last_split
from mispair.data import DataConfig, list_data_splits
from mispair.data.sources import open_pairing
from mispair.errors import InputError
from mispair.functional.detection import detection_metrics
from mispair.functional.mixture import fit_beta_mixture, fit_gaussian_mixture
from mispair.retrieval.evaluate import RecallEvaluator
from mispair.runtime.checkpoint import write_text


def finish(assembly: Assembly) -> dict[str, Any]:
    """The summary of the run, also written to its folder."""
    config, folder, trainer = assembly.config, assembly.folder, assembly.trainer
    progress = trainer.progress
    _write_alignment(assembly)
    polish_stand_ins(assembly)
    summary: dict[str, Any] = {
        "method": config.method.name,
        "model": config.model.name,
        "seed": config.seed,
        "best_epoch": progress.best_epoch,
        "seconds": progress.seconds,
        "dev": progress.best_metrics,
        "data": {"name": assembly.train.name, "pairs": len(assembly.train), "hash": assembly.train.content_hash},
        "noise": _noise(assembly),
        "cost": {
            "networks_trained": sum(name != "cost" for name in trainer.method.modules),
            "networks_scored": len(trainer.method.scorers),
            "steps": trainer.engine.steps,
            # How often the pairs of the data went through a network, all networks together: to learn, and to judge.
            "passes": round(trainer.engine.learned / len(assembly.train), 2),
            "forward_passes": round(trainer.engine.judged / len(assembly.train), 2),
        },
    }
    if _has_test(config.data):
        run = load_run(folder, trainer.engine.device)
        summary["test"] = RecallEvaluator(run.open_split("test"))(run.models)
    summary |= _split_summary(assembly)
    write_text(folder / "metrics.json", json.dumps(summary, indent=2) + "\n")
    write_text(folder / "README.md", model_card(config, summary))
    return summary


def _write_alignment(assembly: Assembly) -> None:
    """First of all and once: what rematching saw in the last epoch is gone when a killed run comes here again."""
    path = assembly.folder / "alignment.json"
    ranked = None if path.exists() else ranked_alignments(assembly)
    if ranked is not None:
        last = str(assembly.trainer.progress.epoch - 1)
        write_text(path, json.dumps({"epochs": {last: ranked}}) + "\n")


def _has_test(data: DataConfig) -> bool:
    """Whether there is a test split, of its own or held out; the part of few images may have come out empty."""
    splits = list_data_splits(data)
    if splits != ["all"]:
        return "test" in splits
    try:
        open_pairing(data, "test")
    except InputError:
        return False
    return True


def _split_summary(assembly: Assembly) -> dict[str, Any]:
    split = last_split(assembly.folder)
    if split is None:
        return {}
    family = getattr(assembly.config.method, "mixture", "beta")
    fit = (fit_beta_mixture if family == "beta" else fit_gaussian_mixture)(split["signal"])
    nobody = not split["mismatched"].any()  # one group of losses: what the upper component holds is an upper bound
    found: dict[str, Any] = {
        "mismatch_rate": 0.0 if nobody else fit.mismatch_rate,
        "mismatch_rate_ci": (0.0, fit.mismatch_rate) if nobody else fit.mismatch_rate_ci,
        "bimodal": fit.bimodal,
        "called_mismatched": float(split["mismatched"].mean()),
    }
    truth = assembly.train.table.truth
    if truth is not None:
        found["detection"] = detection_metrics(split["posterior"], truth.mismatched)
    return found


def _noise(assembly: Assembly) -> dict[str, Any]:
    truth, noise = assembly.train.table.truth, assembly.config.data.noise
    if truth is None or noise is None:
        return {"text": "as the data came", "rate": None, "hash": None}
    rate = float(truth.mismatched.mean())
    kind = (
        "index file"
        if noise.index
        else "shift"
        if noise.shift
        else "repeat"
        if noise.repeat
        else f"{noise.protocol} protocol"
    )
    short = (assembly.train.noise_hash or "")[:16]
    return {
        "text": f"{rate:.3f} of the pairs mismatched on purpose ({kind}), hash `{short}`",
        "rate": rate,
        "protocol": kind,
        "hash": assembly.train.noise_hash,
    }
