"""`mispair audit`: which pairs are wrong, what kind of wrong, and what they should have been."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mispair.cli import data_options as options
from mispair.errors import InputError

if TYPE_CHECKING:
    from mispair.audit.verdicts import Verdicts
    from mispair.cli.progress import Progress


def audit(
    target: str | None = typer.Argument(None, help="A run folder, or with --train the data to train on first."),
    second: str | None = typer.Argument(None, help="With --train: the second side's .npy, when it has no words."),
    data: str | None = typer.Option(None, "--data", help="Other data to judge, instead of what the run learned from."),
    train: bool = typer.Option(False, "--train", help="TARGET is data: train on it first, into AUDIT/run."),
    embeddings: tuple[Path, Path] | None = typer.Option(
        None, "--embeddings", help="Judge two arrays of embeddings, row by row, without training: a.npy b.npy."
    ),
    out: Path = typer.Option(Path("audit"), "-o", "--out", help="The audit folder."),
    split: str | None = typer.Option(None, help="Which split; train by default, all where there are no splits."),
    folds: int | None = typer.Option(
        None,
        help="Train so many networks anew, each judging pairs it has not seen; 0: none. 2 if the run took minutes.",
    ),
    truth: bool = typer.Option(False, "--truth", help="Compare with the mismatches that were injected."),
    truth_column: str | None = typer.Option(
        None, help="Compare with a column of the table: 1 is mismatched, 0 matched."
    ),
    budget: int | None = typer.Option(None, help="So many rows most worth a person's look, in AUDIT/look.csv."),
    csv: bool = typer.Option(False, "--csv", help="Write audit.csv too."),
    as_json: bool = typer.Option(False, "--json", help="Print the facts as JSON."),
    features: str | None = options.FEATURES,
    ids: str | None = options.IDS,
    image_column: str | None = options.IMAGE_COLUMN,
    caption_column: str | None = options.CAPTION_COLUMN,
    split_column: str | None = options.SPLIT_COLUMN,
    missing: str | None = options.MISSING,
) -> None:
    """Judge every pair: the probability that it is mismatched, what it should have been, what kind of damage there is.

    Examples:

      mispair audit runs/scenes-l2rm-vse-1 -o audit                 the data that run was trained on

      mispair audit runs/clip --data pairs.csv --features images.npy --budget 500

      mispair audit pairs.csv --train --features images.npy         train first, then judge

      mispair audit --embeddings images.npy texts.npy               no training at all
    """
    from mispair.cli.progress import Progress

    if (out / "audit.json").exists():
        raise InputError(f"{out} already holds an audit; choose another folder with -o")
    if budget is not None and budget < 1:
        raise InputError(f"--budget is a number of rows, at least 1, got {budget}")
    table = options.table_options(features, ids, image_column, caption_column, split_column, missing)
    if second is not None and not train:
        raise InputError(f"{second} is one argument too many: only --train takes two files, the two sides of the data")
    with Progress() as progress:
        if embeddings is not None:
            _only(embeddings=(target, data, split, folds, truth_column), flags=train or truth or bool(table))
            verdicts = _quick(*embeddings, progress)
        elif target is None:
            raise InputError("say what to audit: a run folder, data with --train, or --embeddings a.npy b.npy")
        else:
            if train and data is not None:
                raise InputError("--train judges what it trains on: leave --data out, or audit the run afterwards")
            if data is None and table and not train:
                raise InputError("features, ids and columns describe other data: name it with --data")
            run = _train(target, {"second": second, **table}, out / "run") if train else Path(target)
            verdicts = _judge(run, data, table, split, folds, truth_column or truth, progress)
    verdicts.save(out)
    if csv:
        verdicts.to_csv(out / "audit.csv")
    _print(verdicts, out, budget, as_json)


def _only(embeddings: tuple[object, ...], flags: bool) -> None:
    if flags or any(value is not None for value in embeddings):
        raise InputError("--embeddings judges two arrays as they are: leave the run and the other options out")


def _quick(first: Path, second: Path, progress: Progress) -> Verdicts:
    from mispair.audit.quick import quick_audit_files

    return quick_audit_files(first, second, tell=progress)


def _judge(
    run: Path,
    data: str | None,
    table: dict[str, Any],
    split: str | None,
    folds: int | None,
    truth: bool | str,
    progress: Progress,
) -> Verdicts:
    from mispair.config.assemble import load_run
    from mispair.config.audit import audit_run

    loaded = load_run(run)
    config = loaded.config.data
    if data is not None:
        config = options.other_data(config, data, table)
    return audit_run(
        loaded,
        config,
        split=split,
        folds=folds,
        truth=truth,
        tell=progress,
    )


def _train(data: str, table: dict[str, Any], folder: Path) -> Path:
    from rich.console import Console

    from mispair.config.assemble import assemble
    from mispair.config.choose import choose
    from mispair.config.finish import finish
    from mispair.config.load import validate
    from mispair.runtime.engine import Engine
    from mispair.runtime.journal import Journal

    if (folder / "config.yaml").exists():
        raise InputError(f"{folder} already holds a run; audit it with: mispair audit {folder}")
    console = Console(stderr=True)
    choice = choose(options.data_config(path=data, **table))
    for section, reason in choice.reasons.items():
        console.print(f"[bold]{section:<7}[/bold] {reason}", highlight=False, soft_wrap=True)
    config = validate(choice.values, "the configuration")
    engine = Engine(config.engine)
    with Journal(folder / "metrics.jsonl", console) as journal:
        run = assemble(config, folder, engine, journal)
        progress = run.trainer.fit()
    if progress.stopped:
        console.print(
            f"Stopped and saved. Go on with: mispair train --resume {folder}, then: mispair audit {folder}",
            markup=False,
        )
        raise typer.Exit(130)
    finish(run)
    return folder


def _print(verdicts: Verdicts, out: Path, budget: int | None, as_json: bool) -> None:
    import json
    from dataclasses import asdict

    from rich.console import Console
    from rich.markup import escape

    looked = None
    if budget is not None:
        from mispair.audit.verdicts import write_csv

        looked = verdicts.look(budget)
        write_csv(looked, out / "look.csv")
    if as_json:
        typer.echo(json.dumps(asdict(verdicts.facts)))
        return
    console = Console(soft_wrap=True)
    console.print(escape(verdicts.summary()), highlight=False)
    if verdicts.facts.truth is not None:
        figures = ", ".join(f"{k.replace('_', ' ')} {v:.3g}" for k, v in verdicts.facts.truth.items() if v is not None)
        console.print(f"Against the truth: {figures}.", highlight=False)
    if looked is not None:
        console.print(_look_table(looked))
        console.print(f"The {looked.num_rows:,} rows most worth a look are in {escape(str(out / 'look.csv'))}.")
    console.print(f"Next: mispair report {escape(str(out))}, or mispair fix {escape(str(out))} --action drop -o fixed")


def _look_table(rows: Any, most: int = 10) -> Any:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title="most worth a look", title_justify="left")
    for heading in ("pair", "image", "caption", "p mismatch", "proposed caption"):
        table.add_column(heading, justify="right" if heading in ("pair", "p mismatch") else "left")
    for row in rows.slice(0, most).to_pylist():
        texts = (row["image_id"], row["caption"], row["proposed_caption"] or "")
        image, caption, proposed = (escape(_printable(text)) for text in texts)
        table.add_row(str(row["pair"]), image, caption, f"{row['p_mismatch']:.2f}", proposed)
    return table


def _printable(text: str, most: int = 60) -> str:
    """A caption may hold control characters that a terminal would obey."""
    clean = "".join(c if c.isprintable() else "�" for c in text.encode(errors="replace").decode())
    return clean if len(clean) <= most else clean[: most - 1] + "…"
