"""After the last epoch: score the best model on test, write the summary and the model card."""

from __future__ import annotations

from typing import Any

from mispair.atomic import write_text
from mispair.auditing.fixing.earlier import earlier_fix
from mispair.functional.detection import detection_metrics
from mispair.functional.judged_by_others import judge_by_others
from mispair.retrieval.evaluate import RecallEvaluator
from mispair.retrieval_module import RetrievalModule
from mispair.workflows.assemble import Training
from mispair.workflows.best_models import best_models
from mispair.workflows.model_card import model_card
from mispair.workflows.rematching_truth import write_rematching
from mispair.workflows.stand_ins import refit_stand_ins


def finish(training: Training) -> dict[str, Any]:
    """The summary of the run, also written to its folder."""
    config, folder, trainer = training.config, training.folder, training.trainer
    progress, data = trainer.progress, training.data
    if not folder.alignment_file.exists():
        write_rematching(training, progress.epoch - 1)
    refit_stand_ins(training)
    summary: dict[str, Any] = {
        "method": config.method.name,
        "model": config.model.name,
        "seed": config.seed,
        "best_epoch": progress.best_epoch,
        "seconds": progress.seconds,
        "dev": progress.best_metrics,
        "data": {"name": data.name, "pairs": len(data), "hash": data.content_hash},
        "noise": _noise(training),
        "cost": {
            "networks_trained": sum(isinstance(module, RetrievalModule) for module in trainer.method.modules.values()),
            "networks_scored": len(trainer.method.networks),
            "steps": trainer.engine.steps,
            # How often the pairs of the data went through a network, all networks together: to learn, and to judge.
            "passes": round(trainer.engine.learned / len(data), 2),
            "forward_passes": round(trainer.engine.judged / len(data), 2),
        },
    }
    if isinstance(trainer.evaluator, RecallEvaluator):
        summary["data"]["dev_hash"] = trainer.evaluator.data.content_hash
    if training.test is not None:
        summary["data"]["test_hash"] = training.test.content_hash
        summary["test"] = RecallEvaluator(training.test)(best_models(training))
    summary |= _estimated_rate(training) | _split_summary(training)
    rematching = folder.rematching()
    if rematching is not None:
        summary["rematching"] = rematching
    folder.write_summary(summary)
    write_text(folder.card_file, model_card(config, summary))
    return summary


def _estimated_rate(training: Training) -> dict[str, Any]:
    """The mismatch rate by what all other pairs say of each, whatever the method made of them.

    Nothing where a network of one's own reads pictures.
    """
    vectors = training.untrained()
    if vectors is None:
        return {}
    estimate = judge_by_others(
        vectors.images, vectors.texts, training.data.table.image_rows, joint=vectors.joint
    ).estimate
    interval = (estimate.low, estimate.high)
    rate = {"mismatch_rate": estimate.rate, "mismatch_rate_ci": interval, "conclusive": estimate.conclusive}
    return rate | {"mended": earlier_fix(training.config.data.path)}


def _split_summary(training: Training) -> dict[str, Any]:
    """How the method divided the pairs in its last epoch, where it did, and how that compares with a known truth."""
    split = training.folder.last_split()
    if split is None:
        return {}
    judged: dict[str, Any] = {"called_mismatched": float(split["mismatched"].mean())}
    truth = training.data.table.truth
    if truth is not None:
        judged["detection"] = detection_metrics(split["posterior"], truth.mismatched)
    return judged


def _noise(training: Training) -> dict[str, Any]:
    """What was mismatched on purpose: a sentence, the share, by which protocol, and the hash of the index."""
    truth, noise = training.data.table.truth, training.config.data.noise
    if truth is None or noise is None:
        return {"text": "as the data came", "rate": None, "hash": None}
    rate = float(truth.mismatched.mean())
    kinds = {"index file": noise.index, "shift": noise.shift, "repeat": noise.repeat}
    kind = next((name for name, asked in kinds.items() if asked), f"{noise.protocol} protocol")
    short = (training.data.noise_hash or "")[:16]
    return {
        "text": f"{rate:.3f} of the pairs mismatched on purpose ({kind}), hash `{short}`",
        "rate": rate,
        "protocol": kind,
        "hash": training.data.noise_hash,
    }
