"""`mispair fix`: the data set mended as an audit says, in a new place; and back again."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mispair.cli.options import data as data_options
from mispair.cli.options.grouping import grouped
from mispair.counted import counted, either
from mispair.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from mispair.auditing.fixing import Fixed
    from mispair.auditing.verdicts import Verdicts


@grouped
def fix(
    audit: Path | None = typer.Argument(None, help="An audit folder."),
    action: str | None = typer.Option(None, help="drop, weight, rematch or swap."),
    undo: Path | None = typer.Option(None, "--undo", help="Instead: a fixed data set (or its fix.patch) to revert."),
    out: Path = typer.Option(..., "-o", "--out", help="A new folder for the data set."),
    threshold: float = typer.Option(0.5, help="Pairs above this probability count as mismatched."),
    min_weight: float = typer.Option(0.0, help="rematch, swap: proposals below this weight count as none."),
    min_gain: float = typer.Option(0.0, help="rematch, swap: proposals that gain less than this count as none."),
    decisions: Path | None = typer.Option(
        None, help="What reviewers decided (AUDIT/decisions.jsonl); it stands above any probability."
    ),
    data: str | None = typer.Option(
        None, "--data", help="Where the data lies, for an audit made in memory or data that was moved."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    *,
    table: data_options.TableOptions,
    pictures: data_options.PictureOptions,
) -> None:
    """Write the data set back in the format it came in, without its mismatched pairs or with better captions.

    drop leaves the mismatched pairs out; weight keeps all and adds how far each can be trusted; rematch gives an image
    the caption proposed for it and leaves out what has none; swap exchanges captions where that mends two pairs. The
    original is never changed; OUT/fix.patch takes OUT back to it.

    Examples:

      mispair fix audit --action drop -o clean

      mispair fix audit --action rematch --min-weight 0.9 -o fixed

      mispair fix --undo fixed -o original
    """
    from rich.console import Console

    console = Console(soft_wrap=True, markup=False, highlight=False)
    if undo is not None:
        if audit is not None or action is not None or data is not None:
            raise InputError("--undo takes a fixed data set back: leave the audit and the action out")
        _undo(undo, out, console, as_json)
        return
    described = table.section() | pictures.section()
    if data is None and described:
        raise InputError("features, ids, columns and images describe data: name it with --data")
    named = None if data is None else {"path": data, **described}
    _fix(audit, action, out, named, (threshold, min_weight, min_gain), decisions, console, as_json)


def _fix(
    audit: Path | None,
    action: str | None,
    out: Path,
    data: dict[str, Any] | None,
    limits: tuple[float, float, float],
    decisions: Path | None,
    console: Console,
    as_json: bool,
) -> None:
    from rich.console import Console

    from mispair.auditing.fixing import fix_data
    from mispair.auditing.fixing.actions import ACTIONS
    from mispair.auditing.verdicts import Verdicts
    from mispair.reviewing.decisions import FILE

    if audit is None:
        raise InputError("say which audit to follow: mispair fix AUDIT --action drop -o OUT")
    if action is None:
        raise InputError(f"--action is missing; it is one of {', '.join(ACTIONS)}")
    verdicts = Verdicts.load(audit)
    config = None if data is None else data_options.data_config(**data)
    threshold, min_weight, min_gain = limits
    captions: dict[int, str] = {}
    said = console if not as_json else Console(quiet=True)
    if decisions is not None:
        verdicts, captions = _as_decided(verdicts, decisions, threshold, said)
    elif (audit / FILE).is_file():
        said.print(f"{audit / FILE} is not used: what reviewers decided counts with --decisions.")
    fixed = fix_data(
        verdicts, action, out, data=config, threshold=threshold, min_weight=min_weight, min_gain=min_gain,
        captions=captions,
    )  # fmt: skip
    if as_json:
        import json

        typer.echo(json.dumps({name: value for name, value in asdict(fixed).items() if name != "folder"}))
        return
    reviewed = None if decisions is None else audit
    _tell(verdicts, fixed, action, limits, out, reviewed, console)


def _as_decided(
    verdicts: Verdicts, decisions: Path, threshold: float, said: Console
) -> tuple[Verdicts, dict[int, str]]:
    """The verdicts as reviewers decided, and the captions they wrote."""
    from mispair.reviewing.applied import apply_decisions
    from mispair.workflows.review import decisions_of

    decided = decisions_of(verdicts, decisions)
    applied = apply_decisions(verdicts, decided.standing)
    if decided.note is not None:
        said.print(f"{decisions}: {decided.note}")
    said.print(f"{counted(applied.decided, 'pair is', 'pairs are')} as reviewers decided.")
    if others := applied.others_sentence(verdicts, threshold):
        said.print(others)
    return applied.verdicts, applied.captions


def _tell(
    verdicts: Verdicts,
    fixed: Fixed,
    action: str,
    limits: tuple[float, float, float],
    out: Path,
    reviewed: Path | None,
    console: Console,
) -> None:
    """What was written, what to expect of it, and what to do next; `reviewed`: the audit, where reviewers decided."""
    from mispair.auditing.fixing.actions import CHOOSING, PROPOSING
    from mispair.auditing.fixing.expectation import advise
    from mispair.shell_word import in_shell

    threshold, min_weight, min_gain = limits
    weighted = ", each with its weight" if action == "weight" else ""
    console.print(
        f"{fixed.kept:,} of {fixed.pairs:,} pairs written to {out}, {fixed.changed:,} with another caption{weighted}."
    )
    if action in CHOOSING and fixed.kept == fixed.pairs and not fixed.changed:
        why = "no exchange would mend two pairs" if action == "swap" else f"no pair is above {threshold:g}"
        console.print(f"Nothing was changed: {why}.")
    elif action in CHOOSING and fixed.wrong is not None:
        # What people decided moves every probability, so before and after are told by the same ones.
        before = verdicts.facts.rate if reviewed is None else float(verdicts.p_mismatch.mean())
        new = f" (about {fixed.true:.0%} of the new captions fit)" if fixed.changed and fixed.true is not None else ""
        console.print(f"Expect {fixed.wrong:.1%} of them to be wrong{new}; before it was {before:.1%}.")
    if action in PROPOSING:
        console.print(advise(verdicts, threshold=threshold, min_weight=min_weight, min_gain=min_gain))
    elif action == "drop" and fixed.wrong is None:
        console.print("How many of them are wrong cannot be told: the audit's model could not tell how many were.")
        if reviewed is not None:
            console.print(f"How many were, the review estimates: mispair review {in_shell(reviewed)} --status")
    if fixed.unjudged:
        others = "pair that was not judged stays as it was" if fixed.unjudged == 1 else "pairs were not judged and stay"
        console.print(f"{fixed.unjudged:,} more {others}.")
    if fixed.beyond:
        console.print(
            f"The audit went up to data.limit. {counted(fixed.beyond, 'pair')} after it, not judged,"
            f" {either(fixed.beyond, 'is', 'are')} left out of {out}; to keep them, judge all of the split first:"
            " mispair audit RUN --data DATA"
        )
    console.print(f"Train on it: mispair train {fixed.train}")
    console.print(f"Back again: mispair fix --undo {in_shell(out)} -o ORIGINAL")


def _undo(fixed: Path, out: Path, console: Console, as_json: bool) -> None:
    from mispair.auditing.fixing import undo_fix

    patch = undo_fix(fixed, out)
    if as_json:
        import json

        typer.echo(json.dumps({name: getattr(patch, name) for name in ("pairs", "kept", "changed")}))
        return
    console.print(f"The data set as it was before the fix is in {out}.")
