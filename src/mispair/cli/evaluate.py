"""`mispair evaluate`: how well does a run retrieve?"""

from __future__ import annotations

from pathlib import Path

import typer


def evaluate(
    runs: list[Path] = typer.Argument(..., help="Run folders; several are scored together, as an ensemble (SGRAF)."),
    data: str | None = typer.Option(None, help="Other data than the run's own: a folder or a table."),
    split: str = typer.Option("test", help="Which split to rank."),
    folds: int | None = typer.Option(None, help="Average over this many equal galleries (COCO 1K: 5)."),
    precision: str = typer.Option("fp32", help="fp32 is exact; bf16 is faster where the processor has it."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of the table."),
) -> None:
    """Rank every image against every text of a split with the best model of a run.

    Examples:

      mispair evaluate runs/scenes-l2rm-vse-1

      mispair evaluate runs/f30k-sgr runs/f30k-saf               the mean of both: SGRAF

      mispair evaluate runs/coco --split testall --folds 5
    """
    from functools import partial
    from typing import cast

    from mispair.cli.progress import Progress
    from mispair.config.assemble import load_run
    from mispair.errors import InputError
    from mispair.retrieval.evaluate import RecallEvaluator
    from mispair.retrieval.scoring import Precision

    if precision not in ("fp32", "bf16"):
        raise InputError(f"--precision must be fp32 or bf16, got {precision!r}")
    loaded = [load_run(folder) for folder in runs]
    # Each run reads words by its own vocabulary, so each scores its own view of the same split.
    total = None
    with Progress() as progress:
        for run in loaded:
            evaluator = RecallEvaluator(
                run.open_split(split, data),
                folds,
                precision=cast(Precision, precision),
                progress=partial(progress, f"scoring {run.folder.name}"),
            )
            scores = evaluator.scores(run.models)
            total = scores if total is None else total + scores
    assert total is not None
    metrics = evaluator.metrics(total / len(loaded))
    if as_json:
        import json

        networks = sum(len(run.models) for run in loaded)
        typer.echo(json.dumps({"runs": [str(r) for r in runs], "split": split, "networks": networks, **metrics}))
        return
    from rich.console import Console

    from mispair.cli.tables import recall_table

    name = " + ".join(f"{run.config.method.name}/{run.config.model.name}" for run in loaded)
    Console().print(recall_table({name: metrics}, f"{split}" + (f", mean of {folds} folds" if folds else "")))
