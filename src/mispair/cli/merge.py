"""`mispair merge`: shards of one audit, or of one embedding, made whole."""

from __future__ import annotations

from pathlib import Path

import typer

from mispair.counted import counted
from mispair.errors import InputError
from mispair.missing_path import does_not_exist, is_missing


def merge(
    folders: list[Path] = typer.Argument(
        ..., help="The folder of --statistics; or the folders that 'mispair embed --shard' wrote."
    ),
    out: Path | None = typer.Option(None, "-o", "--out", help="The audit, or the features, of the whole set."),
    as_json: bool = typer.Option(False, "--json", help="Print the facts as JSON."),
) -> None:
    """Make one of all shards: first a calibration of their statistics, then an audit of their verdicts.

    Examples:

      mispair merge S                          statistics of all shards are there: one calibration

      mispair merge S -o audit                 all shards are judged: proposals from the whole set, one audit

      mispair merge part-* -o features         folders of mispair embed --shard
    """
    from mispair.cli.progress import ProgressLine
    from mispair.workflows.embed_shards import NAME, merge_embedded

    if gone := next((folder for folder in folders if is_missing(folder)), None):
        raise InputError(f"{does_not_exist(gone)}; expected a folder of shards")
    if any((folder / NAME).exists() for folder in folders):
        if out is None:
            raise InputError("say where the features of the whole set go: mispair merge ... -o features")
        rows, pictures = merge_embedded(folders, out)
        typer.echo(
            f"{counted(pictures, 'picture')} and {counted(rows, 'pair')} of {counted(len(folders), 'shard')}"
            f" are in {out}."
        )
        return
    if len(folders) != 1:
        raise InputError("shards of an audit meet in one folder, the one that --statistics named: name that one alone")
    from mispair.atomic import refuse_unwritable
    from mispair.auditing.audit_folder import AuditFolder
    from mispair.auditing.verdicts import Verdicts
    from mispair.scale.shard_folder import ShardFolder
    from mispair.workflows.shards import merge_shards

    if ShardFolder(folders[0]).calibrated:
        if out is None:
            raise InputError(
                f"{folders[0]} is calibrated: say where the audit goes: mispair merge {folders[0]} -o audit"
            )
        AuditFolder(out).refuse_second()
        refuse_unwritable(out)
    with ProgressLine() as progress:
        merged = merge_shards(folders[0], progress)
    if not isinstance(merged, Verdicts):
        typer.echo(merged)
        return
    assert out is not None
    from mispair.cli.audit_text import print_verdicts

    merged.save(out)
    print_verdicts(merged, out, None, as_json)
