"""Audits and embeddings too large for one process: shards that are made anywhere, and what makes them whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mispair.api.data_section import data_section

if TYPE_CHECKING:
    from mispair.data import DataConfig
    from mispair.workflows.report.verdicts import VerdictsWithReport

    PathLike = str | os.PathLike[str]
    Tell = Callable[[str, int, int], None]


def audit_shard(
    target: PathLike | tuple[PathLike, PathLike],
    shard: str,
    statistics: PathLike,
    *,
    data: PathLike | DataConfig | None = None,
    split: str | None = None,
    tell: Tell | None = None,
) -> str:
    """One pass over one shard of an audit: its statistics first, its verdicts once `merge_audit` has calibrated.

    Args:
        target: a run folder, a folder that `mispair.embed` wrote, or two .npy files of embeddings, row by row.
        shard: the i-th of n, "3/7".
        statistics: the folder that all shards meet in; it may lie on a disk that several machines share.
        data: other data for a run to judge; or the table whose rows the embeddings are.
        split: which split a run shall judge.
        tell: called with what is being done, how much of it is done, and how much there is.

    Returns:
        A sentence that says what was done and what comes next.

    Raises:
        InputError: the folder is of other data or of another cut, or the target cannot be used.

    Example:
        >>> for _ in ("statistics", "verdicts"):
        ...     for i in range(1, 8):
        ...         mp.audit_shard(("images.npy", "texts.npy"), f"{i}/7", "S")
        ...     merged = mp.merge_audit("S")
        >>> merged.worst(10)
    """
    from mispair.progress import silent
    from mispair.workflows.pair_vectors import subject_of
    from mispair.workflows.shards import judge_shard, parse_shard

    cut = parse_shard(shard)
    subject = subject_of(*_target(target), None if data is None else data_section(data, {}), split)
    return judge_shard(subject, cut, Path(statistics), tell or silent)


def merge_audit(statistics: PathLike, *, tell: Tell | None = None) -> VerdictsWithReport | str:
    """Make one of all shards of an audit: after the first round a calibration, after the second the verdicts.

    Args:
        statistics: the folder that the shards met in.
        tell: called with what is being done, how much of it is done, and how much there is.

    Returns:
        A sentence about the calibration after the first round; `Verdicts` on every pair after the second.

    Raises:
        InputError: shards are missing, overlap or do not belong together; nothing is written then.

    Example:
        >>> mp.merge_audit("S")
    """
    from mispair.progress import silent
    from mispair.workflows.report.verdicts import with_report
    from mispair.workflows.shards import merge_shards

    merged = merge_shards(Path(statistics), tell or silent)
    return merged if isinstance(merged, str) else with_report(merged)


def audit_on_ray(
    target: PathLike | tuple[PathLike, PathLike],
    statistics: PathLike,
    *,
    data: PathLike | DataConfig | None = None,
    split: str | None = None,
    encoder: str | None = None,
    workers: int | None = None,
    address: str | None = None,
    tell: Tell | None = None,
) -> VerdictsWithReport:
    """All shards of an audit on a Ray cluster; the same call goes on where an earlier one ended.

    Args:
        target: as in `mispair.audit_shard`; or Parquet or tar files with pictures: one, a folder or a pattern, anywhere
            fsspec reads (s3://...).
        statistics: the folder that all shards meet in; every worker must see it.
        data, split: as in `mispair.audit_shard`.
        encoder: what encodes pictures, one with a common space; basic if not said.
        workers: how many at a time; by default as many as there are.
        address: the cluster's host:port; by default one of this machine is started.
        tell: called with what is being done, how much of it is done, and how much there is.

    Returns:
        `Verdicts`: one row per pair and the facts about all of them.

    Raises:
        InputError: Ray is not installed or cannot be reached, or pieces failed.

    Example:
        >>> mp.audit_on_ray("shards/*.tar", "S", encoder="clip-b32").report("audit.html")
    """
    from mispair.progress import silent
    from mispair.workflows.ray_audit import audit_with_ray
    from mispair.workflows.report.verdicts import with_report

    named = None if data is None else data_section(data, {})
    verdicts = audit_with_ray(
        *_target(target), named, split, Path(statistics),
        encoder=encoder, workers=workers, address=address, tell=tell or silent,
    )  # fmt: skip
    return with_report(verdicts)


def merge_embedded(parts: Sequence[PathLike], out: PathLike) -> DataConfig:
    """Make one folder of features of the folders that `mispair.embed(shard=...)` wrote.

    Args:
        parts: all of them, in any order.
        out: a new folder: the same files that one process would have written.

    Returns:
        The data with its features, for `mispair.train`, `mispair.audit` and `mispair.data.open_split`.

    Raises:
        InputError: shards are missing, twice there, of other data or of another encoder; nothing is written then.

    Example:
        >>> mp.merge_embedded([f"part-{i}" for i in range(1, 8)], "features")
    """
    from mispair.data import DataConfig
    from mispair.workflows.embed_shards import merge_embedded as merge

    merge([Path(part) for part in parts], Path(out))
    return DataConfig(path=os.fspath(out))


def _target(target: PathLike | tuple[PathLike, PathLike]) -> tuple[str | None, tuple[str, str] | None]:
    """A folder, or two arrays."""
    if isinstance(target, tuple):
        first, second = target
        return None, (os.fspath(first), os.fspath(second))
    return os.fspath(target), None
