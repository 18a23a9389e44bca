"""The model card of a run: what it is, what it reached, on which data, under which noise."""

from __future__ import annotations

from typing import Any

from mispair.auditing.rate_words import training_rate_words
from mispair.config.schema import RunConfig
from mispair.recall_keys import HEADINGS, RECALLS
from mispair.runtime.trainer import BEFORE_TRAINING
from mispair.version import __version__


def model_card(config: RunConfig, summary: dict[str, Any]) -> str:
    """Markdown from the configuration and the content of `metrics.json`."""
    lines = [
        f"# {config.method.name} on {config.model.name}",
        "",
        f"Cross-modal retrieval model trained with mispair {__version__} on {_code(summary['data']['name'])} "
        f"({summary['data']['pairs']:,} pairs, {_code(config.data.sides[0])} and {_code(config.data.sides[1])}).",
        "",
        "| split | " + " | ".join(HEADINGS) + " |",
        "|---" * (len(HEADINGS) + 1) + "|",
    ]
    for split in ("dev", "test"):
        if summary.get(split):
            figures = " | ".join(f"{summary[split][key]:.1f}" for key in RECALLS)
            lines.append(f"| {split} | {figures} |")
    lines += ["", "Recalls in percent; rSum is their sum, of 600. Ties count against the model.", ""]
    if config.data.path != "scenes" and config.data.noise is None:
        lines += [
            "The dev and test pairs came as the training pairs did, so expect your test split to have mismatches too: "
            "there a right answer counts as wrong, and the recalls are a lower bound.",
            "",
        ]
    if (words := training_rate_words(summary)) is not None:
        lines += [f"{words} `mispair audit .` judges every pair and gives the rate with an interval.", ""]
    cost = summary["cost"]
    lines += [
        f"- networks trained: {cost['networks_trained']}, scored: {cost['networks_scored']}",
        f"- training cost: {cost['passes']:.1f} forward-backward and {cost['forward_passes']:.1f} "
        f"forward passes over the pairs, all networks together; {cost['steps']:,} optimizer steps, "
        f"{summary['seconds']:.0f} seconds",
        f"- best epoch: {_epoch(summary['best_epoch'])} of {config.train.epochs}, seed {config.seed}",
        f"- data hash: {_hashes(summary['data'])}, noise: {summary['noise']['text']}",
        "",
        "`mispair evaluate .` scores it again; `mispair train --config config.yaml -o elsewhere` repeats the run.",
        "",
    ]
    return "\n".join(lines)


def _epoch(epoch: int) -> str:
    return "none, it is kept as it started," if epoch == BEFORE_TRAINING else str(epoch + 1)


def _hashes(data: dict[str, Any]) -> str:
    """Of the training pairs, and of those the recalls were measured on where that is known."""
    others = [f"{split} `{data[key][:16]}`" for split in ("dev", "test") if (key := f"{split}_hash") in data]
    return ", ".join([f"`{data['hash'][:16]}`", *others])


def _code(text: str) -> str:
    """A stranger's text inside Markdown: in a span of code nothing is markup, if the text cannot end the span."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split()).replace("`", "'")
    return f"`{plain or ' '}`"
