"""Experiments from Python: a grid of runs and its table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mispair.api.data_section import data_section
from mispair.errors import InputError

if TYPE_CHECKING:
    import os

    from mispair.encoders.protocol import Encoder

    PathLike = str | os.PathLike[str]


def run_experiment(
    spec: str,
    out: PathLike,
    *,
    data: str = "scenes",
    kind: str | None = None,
    seeds: int = 3,
    jobs: int = 1,
    only: Sequence[str] = (),
    quick: bool = False,
    images: PathLike | None = None,
    encoder: str | Encoder = "basic",
    cells: bool = False,
    say: Callable[[str], None] | None = None,
) -> str:
    """Run every cell of an experiment that is not finished, and render its table.

    Args:
        spec: a name that `mispair.list_experiments()` has, or a YAML file.
        out: folder of the grid; the same one goes on.
        data: the data: a folder, a table, or "scenes"; pictures are encoded first, into OUT/data.
        kind: whose settings to take where the name of the data is none.
        seeds: runs of every cell; seed s also draws the mismatches.
        jobs: cells at a time, one thread each.
        only: some cells: ["row=plain,l2rm", "column=0.4"].
        quick: a first look: one seed of the cells the experiment names for it.
        images, encoder, cells: where the pictures are, and how they are encoded, as in `mispair.embed`.
        say: called with a line of news now and then.

    Returns:
        The table as Markdown; all formats are in OUT/tables.

    Raises:
        InputError: the spec or the data cannot be used, or cells failed.
        KeyboardInterrupt: a signal stopped it; everything is saved and the same call goes on.

    Example:
        >>> print(mp.run_experiment("main", "out/main", seeds=1))
    """
    from mispair.experiments.detectors import run_detectors
    from mispair.experiments.encode_first import encoded_for, refuse_missing_data
    from mispair.experiments.run import Listener, plan_experiment, run_plan, write_tables
    from mispair.experiments.spec import load_spec
    from mispair.workflows.embed import DEFAULT, Encoding

    hear, experiment = say or (lambda line: None), load_spec(spec)[0]
    refuse_missing_data(data)
    detects = experiment.compares == "detectors"
    if not detects:
        kind = experiment.kind_of(data, kind)
    elif kind is not None or jobs != 1:
        raise InputError(f"{spec} asks one detector after the other: leave kind and jobs out")
    asked = images is not None or encoder != DEFAULT or cells
    data = encoded_for(data_section(data, {"images": images}), Encoding(encoder, cells), asked, Path(out))
    if detects:
        return run_detectors(spec, data, Path(out), seeds=seeds, only=only, quick=quick, say=hear)
    plan = plan_experiment(spec, Path(out), data=data, kind=kind, seeds=seeds, only=only, quick=quick)
    failures, stopped = run_plan(plan, Listener(hear), jobs=jobs, command="mispair.run_experiment")
    if stopped:
        raise KeyboardInterrupt("stopped and saved; the same call goes on")
    if failures:
        raise InputError(f"{len(failures)} cells failed, the first is {failures[0].cell.name}: {failures[0].text}")
    return write_tables(Path(out))["md"]
