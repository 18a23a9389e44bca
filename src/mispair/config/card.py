"""The model card of a run: what it is, what it reached, on which data, under which noise."""

from __future__ import annotations

from typing import Any

from mispair.config.schema import RunConfig
from mispair.version import __version__


def model_card(config: RunConfig, summary: dict[str, Any]) -> str:
    """Markdown from the configuration and the content of `metrics.json`."""
    lines = [
        f"# {config.method.name} on {config.model.name}",
        "",
        f"Cross-modal retrieval model trained with mispair {__version__} on `{summary['data']['name']}` "
        f"({summary['data']['pairs']:,} pairs, {config.data.sides[0]} and {config.data.sides[1]}).",
        "",
        "| split | " + " | ".join(_HEADINGS) + " |",
        "|---" * (len(_HEADINGS) + 1) + "|",
    ]
    for split in ("dev", "test"):
        if summary.get(split):
            figures = " | ".join(f"{summary[split][key]:.1f}" for key in _KEYS)
            lines.append(f"| {split} | {figures} |")
    lines += ["", "Recalls in percent; rSum is their sum, of 600. Ties count against the model.", ""]
    estimate = summary.get("mismatch_rate")
    if estimate is not None:
        low, high = summary["mismatch_rate_ci"]
        lines += [
            f"Estimated share of mismatched training pairs: {estimate:.3f} (95 % interval {low:.3f} to {high:.3f}).",
            "",
        ]
    cost = summary["cost"]
    lines += [
        f"- networks trained: {cost['networks_trained']}, scored: {cost['networks_scored']}",
        f"- training cost: {cost['passes']:.1f} forward-backward and {cost['forward_passes']:.1f} "
        f"forward passes over the pairs, all networks together; {cost['steps']:,} optimizer steps, "
        f"{summary['seconds']:.0f} seconds",
        f"- best epoch: {summary['best_epoch'] + 1} of {config.train.epochs}, seed {config.seed}",
        f"- data hash: `{summary['data']['hash'][:16]}`, noise: {summary['noise']['text']}",
        "",
        "`mispair evaluate .` scores it again; `mispair train --config config.yaml -o elsewhere` repeats the run.",
        "",
    ]
    return "\n".join(lines)


_KEYS = ("i2t_r1", "i2t_r5", "i2t_r10", "t2i_r1", "t2i_r5", "t2i_r10", "rsum")
_HEADINGS = ("i2t R@1", "R@5", "R@10", "t2i R@1", "R@5", "R@10", "rSum")
