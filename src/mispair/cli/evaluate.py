"""`mispair evaluate`: how well does a run retrieve?"""

from __future__ import annotations

from pathlib import Path

import typer

from mispair.cli import data_options as options


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
    features: str | None = options.FEATURES,
    ids: str | None = options.IDS,
    image_column: str | None = options.IMAGE_COLUMN,
    caption_column: str | None = options.CAPTION_COLUMN,
    split_column: str | None = options.SPLIT_COLUMN,
    missing: str | None = options.MISSING,
) -> None:
    """Rank every image against every text of a split with the best model of a run.

    Examples:

      mispair evaluate runs/scenes-l2rm-vse-1

      mispair evaluate runs/f30k-sgr runs/f30k-saf               the mean of both: SGRAF

      mispair evaluate runs/coco --split testall --folds 5

      mispair evaluate runs/f30k-sgr --shortlist 40              two stages: a cheap one proposes, the model decides
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
    if shortlist is not None and len(runs) > 1:
        raise InputError("--shortlist ranks with one run: several would each propose other candidates")
    table = options.table_options(features, ids, image_column, caption_column, split_column, missing)
    if table and data is None:
        raise InputError("features, ids and columns describe other data: name it with --data")
    loaded = [load_run(folder) for folder in runs]
    # Each run reads words by its own vocabulary, so each scores its own view of the same split.
    total = None
    with Progress() as progress:
        for run in loaded:
            evaluator = RecallEvaluator(
                run.open_split(split, None if data is None else options.other_data(run.config.data, data, table)),
                folds,
                shortlist=shortlist,
                precision=cast(Precision, precision),
                progress=partial(progress, f"scoring {run.folder.name}"),
            )
            scores = evaluator.scores(run.models)
            total = scores if total is None else total + scores
    assert total is not None
    metrics = evaluator.metrics(total / len(loaded))
    found = evaluator.found if shortlist is not None else None
    if as_json:
        import json

        told = {"runs": [str(r) for r in runs], "split": split, "networks": sum(len(run.models) for run in loaded)}
        if found is not None:
            held = {"recall_i2t": found.recall_i2t, "recall_t2i": found.recall_t2i, "depth": found.depth}
            told["shortlist"] = {"candidates": shortlist, "share": found.share, **held}
        typer.echo(json.dumps({**told, **metrics}))
        return
    from rich.console import Console

    from mispair.cli.tables import recall_table

    name = " + ".join(f"{run.config.method.name}/{run.config.model.name}" for run in loaded)
    Console().print(recall_table({name: metrics}, f"{split}" + (f", mean of {folds} folds" if folds else "")))
    if found is not None and found.recall_i2t is not None and found.recall_t2i is not None:
        typer.echo(
            f"Two stages: the full model scored {found.share:.1%} of the cells; of its {found.depth} best answers "
            f"the shortlist holds {found.recall_i2t:.1%} of the texts and {found.recall_t2i:.1%} of the images "
            "(asked of a few queries)."
        )
