"""`mispair evaluate`: how well does a run retrieve?"""

from __future__ import annotations

from pathlib import Path

import typer

from mispair.cli.options import data as data_options
from mispair.cli.options.grouping import grouped


@grouped
def evaluate(
    runs: list[Path] = typer.Argument(..., help="Run folders; several are scored together, as an ensemble (SGRAF)."),
    data: str | None = typer.Option(None, help="Other data than the run's own: a folder or a table (see Tables)."),
    split: str = typer.Option("test", help="Which split to rank."),
    folds: int | None = typer.Option(None, help="Average over this many equal galleries (COCO 1K: 5)."),
    shortlist: int | None = typer.Option(
        None, min=1, help="Score only this many candidates per query with the full model (several times faster)."
    ),
    precision: str = typer.Option("fp32", help="fp32 is exact; bf16 is faster where the processor has it."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of the table."),
    *,
    table: data_options.TableOptions,
    pictures: data_options.PictureOptions,
) -> None:
    """Rank every image against every text of a split with the best model of a run.

    Examples:

      mispair evaluate runs/scenes-l2rm-vse-1

      mispair evaluate runs/f30k-sgr runs/f30k-saf               the mean of both: SGRAF

      mispair evaluate runs/coco --split testall --folds 5

      mispair evaluate runs/f30k-sgr --shortlist 40              two stages: a cheap one proposes, the model decides
    """
    from typing import cast

    from mispair.cli.progress import ProgressLine
    from mispair.errors import InputError
    from mispair.retrieval.scoring import Precision
    from mispair.workflows.evaluate_runs import evaluate_runs
    from mispair.workflows.other_data import read_as
    from mispair.workflows.trained_run import load_run

    if precision not in ("fp32", "bf16"):
        raise InputError(f"--precision must be fp32 or bf16, got {precision!r}")
    described = table.section() | pictures.section()
    if described and data is None:
        raise InputError("features, ids, columns and images describe other data: name it with --data")
    loaded = [load_run(folder) for folder in runs]
    for run in loaded:
        unfinished = run.unfinished_note()
        if unfinished is not None:
            typer.echo(f"note: {unfinished}", err=True)
    with ProgressLine() as progress:
        others = [
            None if data is None else read_as(run, data_options.other_data(run.config.data, data, described), progress)
            for run in loaded
        ]
        metrics, staged = evaluate_runs(
            loaded, split, others, folds=folds, shortlist=shortlist, precision=cast(Precision, precision), tell=progress
        )
    if as_json:
        import json

        facts = {"runs": [str(r) for r in runs], "split": split, "networks": sum(len(run.models) for run in loaded)}
        if staged is not None:
            held = {"recall_i2t": staged.recall_i2t, "recall_t2i": staged.recall_t2i, "depth": staged.depth}
            facts["shortlist"] = {"candidates": shortlist, "share": staged.share, **held}
        typer.echo(json.dumps({**facts, **metrics}))
        return
    from rich.console import Console

    from mispair.cli.recall_table import recall_caution, recall_table
    from mispair.cli.whole_table import print_whole

    name = " + ".join(f"{run.config.method.name}/{run.config.model.name}" for run in loaded)
    title = f"{split}, mean of {folds} folds" if folds else split
    print_whole(Console(), recall_table({name: metrics}, title))
    judged = (run.config.data if other is None else other for run, other in zip(loaded, others, strict=True))
    if (caution := next(filter(None, map(recall_caution, judged)), None)) is not None:
        typer.echo(caution)
    if staged is not None and staged.recall_i2t is not None and staged.recall_t2i is not None:
        typer.echo(
            f"Two stages: the full model scored {staged.share:.1%} of the cells; of its {staged.depth} best answers "
            f"the shortlist holds {staged.recall_i2t:.1%} of the texts and {staged.recall_t2i:.1%} of the images "
            "(asked of a few queries)."
        )
