"""What people decided about an audit's pairs, in one sentence for its page."""

from __future__ import annotations

from pathlib import Path

from mispair.auditing.verdicts import Verdicts
from mispair.counted import counted
from mispair.reviewing.agreement import reviewer_figures
from mispair.reviewing.decisions import FILE
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
    people = f"{len(figures)} reviewers" if len(figures) > 1 else "one reviewer"
    said = f"People looked at {counted(sum(f.answers for f in figures), 'pair')} ({people}"
    said += f", {errors} of {controls} controls answered wrongly)" if controls else ")"
    estimate = session.estimate()
    if estimate.labelled < 10:
        return f"{said}."
    return (
        f"{said}; by their random part {estimate.rate:.0%} are mismatched ({estimate.low:.0%} to {estimate.high:.0%}),"
        " whatever the model is worth."
    )
