"""`mispair fix`: the data set mended as an audit says, in a new place; and back again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from mispair.errors import InputError


def fix(
    audit: Path | None = typer.Argument(None, help="An audit folder."),
    action: str | None = typer.Option(None, help="drop, weight, rematch or swap."),
    undo: Path | None = typer.Option(None, "--undo", help="Instead: a fixed data set (or its fix.patch) to revert."),
    out: Path = typer.Option(..., "-o", "--out", help="A new folder for the data set."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Write the data set back in the format it came in, without its mismatched pairs or with better captions.

    drop leaves the mismatched pairs out; weight keeps all and adds how far each can be trusted; rematch gives an image
    the caption proposed for it and leaves out what has none; swap exchanges captions where that mends two pairs. The
    original is never changed; OUT/fix.patch takes OUT back to it.

    Examples:

      mispair fix audit --action rematch -o fixed

      mispair fix --undo fixed -o original
    """
    if undo is not None:
        if audit is not None or action is not None:
            raise InputError("--undo takes a fixed data set back: leave the audit and the action out")
        facts = _undo(undo, out)
    else:
        facts = _fix(audit, action, out)
    if as_json:
        import json

        typer.echo(json.dumps(facts))
        return
    from rich.console import Console

    console = Console(soft_wrap=True)
    kept, pairs = facts["kept"], facts["pairs"]
    if undo is not None:
        console.print(f"Back to {pairs:,} pairs in {out}.", markup=False, highlight=False)
        return
    console.print(
        f"{kept:,} of {pairs:,} pairs written to {out}, {facts['changed']:,} with another caption"
        f"{', each with its weight' if action == 'weight' else ''}.",
        markup=False,
        highlight=False,
    )
    console.print(f"Train on it: mispair train {facts['train']}", markup=False, highlight=False)
    console.print(f"Back again: mispair fix --undo {out} -o ORIGINAL", markup=False, highlight=False)


def _fix(audit: Path | None, action: str | None, out: Path) -> dict[str, Any]:
    from mispair.audit.fix import ACTIONS, plan_fix
    from mispair.audit.verdicts import Verdicts
    from mispair.audit.writing import train_arguments, write_fixed

    if audit is None:
        raise InputError("say which audit to follow: mispair fix AUDIT --action drop -o OUT")
    if action is None:
        raise InputError(f"--action is missing; it is one of {', '.join(ACTIONS)}")
    verdicts = Verdicts.load(audit)
    plan = plan_fix(verdicts, action)
    write_fixed(verdicts, plan, out)
    again = train_arguments(verdicts, out)
    return {"pairs": len(verdicts), "kept": len(plan.kept), "changed": plan.changed, "train": again}


def _undo(fixed: Path, out: Path) -> dict[str, Any]:
    import os
    import tempfile

    from mispair.audit.patch import NAME, revert

    folder = fixed.parent if fixed.name == NAME else fixed
    if os.path.lexists(out):
        raise InputError(f"{out} exists already; nothing is overwritten, so choose another place with -o")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as temporary:
            target = Path(temporary) / "original"
            target.mkdir()
            about = revert(folder, target)
            os.rename(target, out)
    except OSError as error:
        raise InputError(f"{out} cannot be written ({error.strerror}); choose another place with -o") from None
    return {name: int(about[name]) for name in ("pairs", "kept", "changed")}
