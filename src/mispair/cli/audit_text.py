"""What an audit says on the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mispair.counted import counted, either

if TYPE_CHECKING:
    from mispair.auditing.verdicts import Verdict, Verdicts


def print_verdicts(verdicts: Verdicts, out: Path, budget: int | None, as_json: bool) -> None:
    """Say what was found and what to do next; `budget` rows most worth a look go to OUT/look.csv."""
    import json
    from dataclasses import asdict

    from rich.console import Console
    from rich.markup import escape

    from mispair.auditing.audit_folder import AuditFolder
    from mispair.auditing.fixing.expectation import advise, advised_action
    from mispair.shell_word import in_shell

    if budget is not None:
        verdicts.to_csv(AuditFolder(out).look_file, look=budget)
    if as_json:
        typer.echo(json.dumps(asdict(verdicts.facts)))
        return
    console = Console(soft_wrap=True)
    console.print(escape(verdicts.summary()), highlight=False)
    console.print(escape(advise(verdicts)), highlight=False)
    if verdicts.facts.truth is not None:
        # Shares have three digits; what is larger than one is a count.
        known = [(k.replace("_", " "), f"{v:,.0f}" if v > 1 else f"{v:.3f}") for k, v in verdicts.facts.truth.items()]
        figures = ", ".join(f"{name} {value}" for name, value in known)
        console.print(f"Against the truth: {figures}.", highlight=False)
    if budget is not None:
        console.print(_look_table(verdicts.look(min(budget, 10))))
        rows = min(budget, len(verdicts))
        console.print(
            f"The {counted(rows, 'row')} most worth a look {either(rows, 'is', 'are')} in"
            f" {escape(str(AuditFolder(out).look_file))}."
        )
    where = escape(in_shell(out))
    action = advised_action(verdicts)
    then = f"mispair review {where}" if action is None else f"mispair fix {where} --action {action} -o fixed"
    console.print(f"Next: mispair report {where}, or {then}")


def _look_table(rows: list[Verdict]) -> Any:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title="most worth a look", title_justify="left")
    for heading in ("pair", "image", "caption", "p mismatch", "proposed caption"):
        number = heading in ("pair", "p mismatch")
        table.add_column(heading, justify="right" if number else "left", overflow="fold")
    for row in rows:
        texts = (row.image_id, row.caption, row.proposed_caption or "")
        image, caption, proposed = (escape(_printable(text)) for text in texts)
        table.add_row(str(row.pair), image, caption, f"{row.p_mismatch:.2f}", proposed)
    return table


def _printable(text: str, most: int = 60) -> str:
    """A caption may hold control characters that a terminal would obey."""
    clean = "".join(c if c.isprintable() else "�" for c in text.encode(errors="replace").decode())
    return clean if len(clean) <= most else clean[: most - 1] + "…"
