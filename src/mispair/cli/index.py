"""`mispair index`: the vectors of pairs, on disk, ready to be searched."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mispair.cli.audit_target import is_pictures
from mispair.cli.options import data as data_options
from mispair.cli.options.grouping import grouped
from mispair.errors import InputError

if TYPE_CHECKING:
    from mispair.auditing.verdicts import Verdicts


@grouped
def index(
    sources: list[str] = typer.Argument(
        ...,
        metavar="SOURCE...",
        help="A run or an audit by one; several runs are searched together (SGRAF); pictures and captions, for an "
        "encoder; with --parquet, an index.",
    ),
    out: Path = typer.Option(
        Path("index"), "-o", "--out", help="The index folder; made again, only what is new is encoded."
    ),
    data: str | None = typer.Option(None, "--data", help="Other data to index than what the run learned from."),
    audit: Path | None = typer.Option(
        None, help="An audit of it: search can then show matched or suspicious pairs only."
    ),
    parquet: Path | None = typer.Option(
        None, "--parquet", help="Write the index SOURCE into one .parquet for a vector database, and stop."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the manifest as JSON."),
    encoder: str | None = typer.Option(None, help="What encodes pictures: basic, siglip2-base, ...; mispair encoders."),
    *,
    table: data_options.TableOptions,
    pictures: data_options.PictureOptions,
) -> None:
    """Encode every image and text once and keep the vectors for search.

    Exact below 200,000 pairs; beyond, grouped by faiss (pip install faiss-cpu). The folder is laid out as
    clip-retrieval reads it: img_emb/, text_emb/, metadata/*.parquet.

    Examples:

      mispair index runs/a -o index

      mispair index runs/sgr runs/saf -o index                              the mean of both scores: SGRAF

      mispair index pairs.csv --images photos -o index                      nothing is trained

      mispair search index "two dogs in the snow"

      mispair index index --parquet vectors.parquet                         for a vector database
    """
    from mispair.auditing.audit_folder import AuditFolder
    from mispair.auditing.verdicts import Verdicts
    from mispair.cli.progress import ProgressLine
    from mispair.shell_word import in_shell

    described = table.section() | pictures.section()
    source = sources[0]
    if len(sources) > 1 and (encoder is not None or parquet is not None):
        raise InputError(
            f"only runs are searched together: with --encoder or --parquet name one source, not {sources[1]}"
        )
    if parquet is not None:
        _export(Path(source), parquet)
        return
    verdicts = None if audit is None else Verdicts.load(audit)
    alone = len(sources) == 1 and encoder is None and data is None
    if alone and is_pictures({"path": source, **described}, raw=True):
        encoder = "basic"
    with ProgressLine() as progress:
        if encoder is not None:
            from mispair.workflows.embed import Encoding
            from mispair.workflows.index_encoder import build_encoder_index

            if data is not None:
                raise InputError(
                    "with --encoder the data is the argument:"
                    f" mispair index {in_shell(data)} --encoder {in_shell(encoder)}"
                )
            config = data_options.data_config(path=source, **described)
            manifest = build_encoder_index(config, out, Encoding(encoder), verdicts, progress)
            encoded = ""
        else:
            from mispair.workflows.index_run import build_index
            from mispair.workflows.joined_runs import join_runs
            from mispair.workflows.trained_run import load_run

            if described and data is None:
                raise InputError("features, ids, columns and images describe other data: name it with --data")
            runs = [Path(source) for source in sources]
            if len(runs) == 1 and verdicts is None and AuditFolder(runs[0]).begun:
                verdicts = Verdicts.load(runs[0])
                runs = [_run_of(verdicts, runs[0])]
            loaded = join_runs([load_run(run) for run in runs])
            other = None if data is None else data_options.other_data(loaded.config.data, data, described)
            made = build_index(loaded, out, other, verdicts, progress)
            manifest = made.manifest
            encoded = f" ({made.encoded:,} images and texts encoded, {made.kept:,} kept)" if made.kept else ""
    if as_json:
        typer.echo(manifest.model_dump_json())
        return
    typer.echo(f"{manifest.pairs:,} pairs, {manifest.width} numbers a side, {manifest.kind}: {out}{encoded}")
    typer.echo(f'Next: mispair search {in_shell(out)} "two dogs in the snow", or mispair serve {in_shell(out)}')


def _run_of(verdicts: Verdicts, audit: Path) -> Path:
    from mispair.shell_word import in_shell
    from mispair.workflows.run_of_audit import run_of_audit

    run = run_of_audit(verdicts, audit)
    if run is None:
        why = "no run judged it" if verdicts.facts.run is None else f"its run {verdicts.facts.run} is gone"
        raise InputError(f"{audit} is an audit and {why}: mispair index DATA --encoder basic --audit {in_shell(audit)}")
    return run


def _export(index: Path, out: Path) -> None:
    from mispair.searching.export import export_parquet
    from mispair.searching.index import Index

    rows = export_parquet(Index.open(index), out)
    typer.echo(f"{rows:,} pairs written to {out}: id, image_vector, text_vector and what is known of each")
