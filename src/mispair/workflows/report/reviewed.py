"""What people decided about an audit's pairs, in one sentence for its page."""

from __future__ import annotations

from pathlib import Path

from mispair.auditing.verdicts import Verdicts
from mispair.counted import counted
from mispair.reviewing.agreement import Agreement, agreements, reviewer_figures
from mispair.reviewing.decisions import FILE, latest_by_pair
from mispair.reviewing.session import ReviewSession


def reviewed(folder: Path, audit: Verdicts) -> str:
    """The reviewed rate and how careful the reviewers were; nothing where nobody has decided anything.

    Raises:
        InputError: the decisions are damaged, or about another audit.
    """
    if not (folder / FILE).is_file():
        return ""
    session = ReviewSession(folder, audit)
    standing = session.log.standing
    if not standing:
        return ""
    figures = reviewer_figures(standing)
    controls, errors = sum(f.controls for f in figures), sum(f.control_errors for f in figures)
    people = counted(len(figures), "reviewer") if len(figures) > 1 else "one reviewer"
    said = f"People decided {len(latest_by_pair(standing)):,} of the pairs ({people}{_agreed(agreements(standing))}"
    said += f", {errors} of {controls} controls answered wrongly)" if controls else ")"
    estimate = session.estimate()
    if estimate.labelled < 10:
        return f"{said}."
    return (
        f"{said}; by their random part {estimate.rate:.0%} are mismatched ({estimate.low:.0%} to {estimate.high:.0%}),"
        " whatever the model is worth."
    )


def _agreed(between: list[Agreement]) -> str:
    """How far reviewers agree; of several pairs of them, the two who agree least."""
    if not between:
        return ""
    least = min(between, key=lambda a: a.share)
    kappa = "" if least.kappa is None else f", kappa {least.kappa:.2f}"
    who = "who agree" if len(between) == 1 else "of whom any two agree at least"
    return f" {who} on {least.share:.0%} of {least.pairs:,}{kappa}"
