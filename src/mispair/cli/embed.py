"""`mispair embed`: pictures and captions through an encoder, as a folder of features."""

from __future__ import annotations

from pathlib import Path

import typer

from mispair.cli.options import data as data_options
from mispair.cli.options import encoding as encode_options
from mispair.cli.options import shards as shard_options
from mispair.cli.options.grouping import grouped
from mispair.counted import counted


@grouped
def embed(
    data: str = typer.Argument(..., help=data_options.DATA_HELP),
    out: Path = typer.Option(Path("features"), "-o", "--out", help="The new folder; every verb takes it as DATA."),
    device: str | None = typer.Option(None, "--device", help="auto, cpu, cuda or mps.", rich_help_panel="Pictures"),
    shard: str | None = shard_options.SHARD,
    as_json: bool = typer.Option(False, "--json", help="Print JSON for machines."),
    *,
    columns: data_options.ColumnOptions,
    pictures: data_options.PictureOptions,
    encode: encode_options.EncodeOptions,
) -> None:
    """Encode pictures and captions once, into a folder that train, audit and evaluate read.

    What is encoded stays in the cache ($MISPAIR_CACHE): a second run, or one after a kill, goes on where it was.
    Pictures that cannot be read or decoded are listed in failed.csv; --missing skip leaves their pairs out.

    Examples:

      mispair embed pairs.csv --images photos -o features

      mispair embed shards --encoder siglip2-base -o features

      mispair embed pairs.csv --images photos --cells -o cells        for sgr, saf and imram

      mispair embed pairs.csv --images photos --shard 3/7 -o part-3   a seventh; then: mispair merge part-* -o features
    """
    import time

    from mispair.cli.progress import ProgressLine
    from mispair.data.embedded_folder import EmbeddedFolder
    from mispair.shell_word import in_shell
    from mispair.workflows.embed_folder import embed as embed_data
    from mispair.workflows.shards import parse_shard

    config = data_options.data_config(
        path=data,
        **columns.section(),
        **pictures.section(),
    )
    how = encode.encoding(device)
    start = time.monotonic()
    with ProgressLine() as progress:
        done = embed_data(config, how, out, progress, None if shard is None else parse_shard(shard))
    seconds = time.monotonic() - start
    total = len(done.source.pictures or ()) + len(done.source.no_picture)
    if as_json:
        import json

        facts = {"out": str(out), "encoder": done.encoder.name, "pictures": total, "encoded": done.encoded}
        typer.echo(json.dumps({**facts, "failed": len(done.failures), "seconds": round(seconds, 2)}))
        return
    cached = total - done.encoded - len(done.failures)
    rate = f", {done.encoded / seconds:,.0f}/s" if done.encoded else ""
    typer.echo(
        f"{counted(total, 'picture')}: {done.encoded:,} encoded{rate}, {cached:,} from the cache,"
        f" {len(done.failures):,} failed."
    )
    if done.failures:
        typer.echo(f"Those that failed are listed in {EmbeddedFolder(out).failed_file}.")
    if shard is not None:
        typer.echo("Next, when all shards are there: mispair merge PARTS -o features")
        return
    if done.source.captions is None:
        from mispair.data.readers.picture_files import no_captions

        typer.echo(f"There is nothing to train on yet: {no_captions(Path(data))}")
        return
    judged = f"mispair audit {in_shell(out)}"
    at_once = f"{judged}, " if EmbeddedFolder(out).joint_file.exists() else ""
    typer.echo(f"Next: {at_once}mispair train {in_shell(out)}, or {judged} --train")
    if EmbeddedFolder(out).texts_file.exists() and not how.cells:
        typer.echo("(captions are read as vectors of the encoder; --texts words learns words instead)")
