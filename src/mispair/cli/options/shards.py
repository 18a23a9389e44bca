"""Options that cut the work into shards, and what they ask for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mispair.cli.options import data as data_options
from mispair.errors import InputError

if TYPE_CHECKING:
    from mispair.progress import Tell

_PANEL = "Shards"
SHARD = typer.Option(None, "--shard", help="The i-th of n shards alone, i/n: 3/7.", rich_help_panel=_PANEL)
STATISTICS = typer.Option(
    None,
    "--statistics",
    help="The folder that the shards of an audit meet in: each writes its statistics there, 'mispair merge' calibrates,"
    " then the same command judges.",
    rich_help_panel=_PANEL,
)
ENGINE = typer.Option(
    None, "--engine", help="ray: all shards on a Ray cluster, one of this machine by default.", rich_help_panel=_PANEL
)
ADDRESS = typer.Option(None, "--address", help="With --engine ray: the cluster's host:port.", rich_help_panel=_PANEL)


def judge_shard(
    target: str | None,
    embeddings: tuple[Path, Path] | None,
    data: str | None,
    table: dict[str, Any],
    split: str | None,
    shard: str | None,
    statistics: Path | None,
    tell: Tell,
) -> str:
    """One pass over one shard, as the options of `mispair audit` say; a sentence about it."""
    from mispair.workflows.shards import ShardJudge, parse_shard

    if shard is None or statistics is None:
        raise InputError("a shard needs both options: --shard 3/7 --statistics FOLDER")
    i, n = parse_shard(shard)
    subject = subject_of(target, embeddings, data, table, split)
    return ShardJudge(subject, n, statistics).judge(i, tell)


def subject_of(
    target: str | None,
    embeddings: tuple[Path, Path] | None,
    data: str | None,
    table: dict[str, Any],
    split: str | None,
) -> Any:
    """What is judged in shards: arrays, a folder of embed, or data seen by a run."""
    from mispair.data.embedded_folder import EmbeddedFolder
    from mispair.runtime.run_folder import RunFolder
    from mispair.workflows.pair_vectors import Subject, subject_of_run
    from mispair.workflows.trained_run import load_run

    if embeddings is not None:
        if target is not None or split is not None:
            raise InputError("--embeddings brings the vectors: leave TARGET and --split out")
        if data is None and table:
            raise InputError("features, ids and columns describe a table: name it with --data")
        named = None if data is None else data_options.data_config(path=data, **table)
        return Subject.of_embeddings(str(embeddings[0]), str(embeddings[1]), named)
    if target is None:
        raise InputError("say what to judge: --embeddings a.npy b.npy, a folder of mispair embed, or a run")
    if RunFolder(Path(target)).begun:
        run = load_run(Path(target))
        config = run.config.data if data is None else data_options.other_data(run.config.data, data, table)
        return subject_of_run(run, config, split)
    if not os.path.exists(target):
        raise InputError(f"{target} does not exist; expected a folder of mispair embed, or a run")
    if not EmbeddedFolder(Path(target)).begun:
        raise InputError(
            f"{target} is no run and no folder of mispair embed, and shards are cut from vectors; embed it first:"
            f" mispair embed {target} --shard 1/4"
        )
    return Subject.of_folder(target)


def judge_on_engine(
    engine: str,
    target: str | None,
    embeddings: tuple[Path, Path] | None,
    data: str | None,
    table: dict[str, Any],
    split: str | None,
    encoder: str | None,
    workers: int | None,
    address: str | None,
    statistics: Path,
    tell: Tell,
) -> Any:
    """Verdicts of all shards, run by an engine; raw pictures are encoded there first."""
    from mispair.workflows.ray_audit import audit_on_ray, encode_on_ray, is_raw
    from mispair.workflows.ray_engine import connected

    if engine != "ray":
        raise InputError(f"--engine is ray, got {engine!r}")
    with connected(address, workers) as cluster:
        if embeddings is None and target is not None and is_raw(target):
            subject = encode_on_ray(target, encoder or "basic", statistics, cluster, tell)
        else:
            subject = subject_of(target, embeddings, data, table, split)
        return audit_on_ray(subject, statistics, cluster, tell)
