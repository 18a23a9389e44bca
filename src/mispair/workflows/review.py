"""Decisions in and out of an audit, and what they amount to."""

from __future__ import annotations

from pathlib import Path

from mispair.atomic import write_atomically
from mispair.auditing.verdicts import Verdicts
from mispair.counted import counted
from mispair.errors import InputError
from mispair.reviewing.agreement import agreements, disagreements, reviewer_figures
from mispair.reviewing.decisions import FILE, DecisionFile, merge_imported, read_decisions
from mispair.reviewing.exchange import FORMATS, read_exchange, to_bytes
from mispair.reviewing.identity import audit_identity
from mispair.reviewing.session import ReviewSession
from mispair.shell_word import in_shell


def decisions_of(verdicts: Verdicts, path: Path) -> DecisionFile:
    """The decisions in `path`, refused where they are about another audit."""
    decisions = read_decisions(path)
    if decisions.audit != audit_identity(verdicts):
        raise InputError(f"{path} holds decisions about another audit; give the audit it was made for")
    return decisions


def export_decisions(audit: Path, out: Path, decisions: Path | None = None) -> int:
    """Write the standing decisions to `out`; how many (controls stay out of Label Studio's JSON)."""
    if out.suffix.lower() not in FORMATS:
        raise InputError(f"{out}: decisions are exported as {', '.join(FORMATS)}")
    verdicts = Verdicts.load(audit)
    standing = decisions_of(verdicts, decisions or audit / FILE).standing
    if out.suffix.lower() == ".json":
        standing = tuple(decision for decision in standing if decision.control is None)
    content = to_bytes(standing, out.suffix.lower(), verdicts)
    write_atomically(out, lambda path: path.write_bytes(content))
    return len(standing)


def import_decisions(audit: Path, file: Path, decisions: Path | None = None) -> int:
    """Take decisions from `file` into the audit's; how many were new."""
    verdicts = Verdicts.load(audit)
    new = read_exchange(file, len(verdicts))
    return merge_imported(ReviewSession(audit, verdicts, decisions).log, new)


def review_status(audit: Path, decisions: Path | None = None) -> str:
    """What was decided so far, in a few lines."""
    verdicts = Verdicts.load(audit)
    path = decisions or audit / FILE
    if not path.exists():
        raise InputError(f"nothing was decided yet: {path} is not there; begin with: mispair review {in_shell(audit)}")
    session = ReviewSession(audit, verdicts, decisions)
    standing = session.log.standing
    estimate = session.estimate()
    lines = [] if session.note is None else [f"{path}: {session.note}"]
    lines.append(f"{counted(len(standing), 'answer')} about {counted(len(verdicts), 'pair')}.")
    if estimate.labelled >= 10:
        lines.append(f"Mismatched, from the random part, {estimate.sentence()}; 95 % interval, valid for any model.")
    else:
        lines.append(f"The random part holds {counted(estimate.labelled, 'answer')}; from 10 on it estimates the rate.")
    for row in reviewer_figures(standing):
        error = "" if row.error_rate is None else f", {row.control_errors} of {row.controls} controls wrong"
        pace = "" if row.seconds is None else f", {row.seconds:.1f} s a pair"
        lines.append(f"{row.reviewer}: {counted(row.answers, 'answer')}, {row.skipped:,} skipped{pace}{error}")
    for pair in agreements(standing):
        kappa = "" if pair.kappa is None else f", kappa {pair.kappa:.2f}"
        lines.append(
            f"{' and '.join(pair.reviewers)} agree on {pair.share:.0%} of {counted(pair.pairs, 'pair')}{kappa}"
        )
    open_questions = disagreements(standing)
    if open_questions:
        lines.append(
            f"{counted(len(open_questions), 'pair was', 'pairs were')} answered differently; the next"
            f" reviewer begins there."
        )
    return "\n".join(lines)
