"""`mispair audit`: which pairs are wrong, what kind of wrong, and what they should have been."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mispair.cli.audit_target import is_pictures, refuse_data
from mispair.cli.options import data as data_options
from mispair.cli.options import encoding as encode_options
from mispair.cli.options import shards as shard_options
from mispair.cli.options import training as train_options
from mispair.cli.options.grouping import grouped
from mispair.errors import InputError
from mispair.missing_path import does_not_exist, is_missing

if TYPE_CHECKING:
    from mispair.auditing.verdicts import Verdicts
    from mispair.cli.progress import ProgressLine
    from mispair.data.config import DataConfig
    from mispair.workflows.embed import Encoding


@grouped
def audit(
    target: str | None = typer.Argument(
        None, help="A run folder; or data: pictures for an encoder to judge, with --train any to train on first."
    ),
    second: str | None = typer.Argument(None, help="With --train: the second side's .npy, when it has no words."),
    data: str | None = typer.Option(
        None, "--data", help="Other data to judge with the run; or the table whose rows the --embeddings are."
    ),
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
    shard: str | None = shard_options.SHARD,
    statistics: Path | None = shard_options.STATISTICS,
    engine: str | None = shard_options.ENGINE,
    address: str | None = shard_options.ADDRESS,
    *,
    training: train_options.TrainingOptions,
    table: data_options.TableOptions,
    pictures: data_options.PictureOptions,
    encode: encode_options.EncodeBothOptions,
) -> None:
    """Judge every pair: the probability that it is mismatched, what it should have been, what kind of damage there is.

    Examples:

      mispair audit runs/scenes-l2rm-vse-1 -o audit                 the data that run was trained on

      mispair audit runs/clip --data pairs.csv --features images.npy --budget 500

      mispair audit pairs.csv --images photos                       pictures, judged by the encoder: no training at all

      mispair audit pairs.csv --images photos --train               pictures, encoded once; train first, then judge

      mispair audit pairs.csv --train --features images.npy         train first, then judge

      mispair audit --embeddings images.npy texts.npy --data pairs.csv    vectors of your own

      mispair audit --embeddings images.npy texts.npy --shard 3/7 --statistics S    a seventh of them

      mispair audit shards --engine ray -o audit                    pictures in Parquet or tar files, on a Ray cluster
    """
    from mispair.atomic import refuse_unwritable
    from mispair.auditing.audit_folder import AuditFolder
    from mispair.cli.audit_text import print_verdicts
    from mispair.cli.progress import ProgressLine
    from mispair.data.embedded_folder import EmbeddedFolder
    from mispair.runtime.engine import leads
    from mispair.workflows.refuse_unfit import refuse_unknown

    if not train and not leads():  # training is shared under torchrun, judging is not
        raise typer.Exit
    alone = engine is None and (shard is not None or statistics is not None)
    if not alone:  # a shard leaves nothing in `out`
        AuditFolder(out).refuse_second()
        refuse_unwritable(out)
    if budget is not None and budget < 1:
        raise InputError(f"--budget is a number of rows, at least 1, got {budget}")
    described = table.section() | pictures.section()
    said = training.said()
    refuse_unknown(training.method, training.model, None)
    how = encode.encoding(training.device, training.model)
    if second is not None and not train:
        raise InputError(f"{second} is one argument too many: only --train takes two files, the two sides of the data")
    if address is not None and engine is None:
        raise InputError("--address names a cluster: add --engine ray")
    if engine is not None or alone:
        if train or truth or folds or truth_column or budget or csv or said:
            raise InputError(
                "a shard is judged as it is: leave training, --device, --folds, --truth, --budget and --csv out"
            )
        if alone and (encode.asked or encode.workers is not None or as_json):
            raise InputError(
                "a shard is measured from vectors that are there, and says so in a sentence: leave --encoder, --cells,"
                " --texts, --workers and --json out"
            )
        if engine is not None and (shard is not None or encode.cells or encode.texts):
            raise InputError(
                "--engine ray cuts the shards itself and compares vectors: leave --shard, --cells and --texts out"
            )
        named = _named(data, described)
        vectors = None if embeddings is None else (str(embeddings[0]), str(embeddings[1]))
        with ProgressLine() as progress:
            if engine is None:
                typer.echo(_judge_shard(target, vectors, named, split, shard, statistics, progress))
                return
            if engine != "ray":
                raise InputError(f"--engine is ray, got {engine!r}")
            from mispair.workflows.ray_audit import audit_with_ray

            place = statistics or out / "shards"
            verdicts = audit_with_ray(
                target, vectors, named, split, place,
                encoder=encode.encoder, batch=encode.batch, workers=encode.workers, address=address, tell=progress,
            )  # fmt: skip
        verdicts.save(out)
        encode_options.tell_failed(str(EmbeddedFolder(place).features_file), out)
        print_verdicts(verdicts, out, None, as_json)
        return
    with ProgressLine() as progress:
        if embeddings is not None:
            others = (target, second, split, folds, truth_column)
            if train or truth or said or any(value is not None for value in others):
                raise InputError(
                    "--embeddings judges two arrays as they are, with --data naming the rows of a table: leave the run"
                    " and the other options out"
                )
            verdicts = _quick(*embeddings, data, described, progress)
        elif target is None:
            raise InputError("say what to audit: a run folder, data with --train, or --embeddings a.npy b.npy")
        else:
            if train and data is not None:
                raise InputError("--train judges what it trains on: leave --data out, or audit the run afterwards")
            if not train and target != "scenes" and is_missing(target):
                raise InputError(f"{does_not_exist(target)}; expected a run folder, or data with --images or --train")
            files = {"path": target, **({"second": second} if second is not None else {}), **described}
            raw = not train and data is None and is_pictures(files)
            if data is None and described and not train and not raw:
                raise InputError("features, ids, columns and images describe other data: name it with --data")
            if said.keys() - {"device"} and not train:
                raise InputError("a run is audited as it is: leave the options of training out, or add --train")
            if raw:
                _refuse_training_only(split, folds, truth, truth_column, encode.cells, encode.texts)
                verdicts = _without_training(files, how, progress)
            else:
                if not train:
                    refuse_data(target)
                if train:
                    files = encode_options.encoded_values(files, how, encode.asked, progress, sets=training.sets)
                run = _train(files, said, out / "run") if train else Path(target)
                verdicts = _judge(run, data, described, split, folds, truth_column or truth, progress)
    verdicts.save(out)
    judged = verdicts.facts.data.get("config")
    encode_options.tell_failed(judged.get("features") if isinstance(judged, dict) else None, out)
    if csv:
        verdicts.to_csv(out / "audit.csv")
    print_verdicts(verdicts, out, budget, as_json)


def _named(data: str | None, table: dict[str, Any]) -> DataConfig | None:
    """The table that --data names, as the other options describe it."""
    if data is None and table:
        raise InputError("features, ids and columns describe a table: name it with --data")
    return None if data is None else data_options.data_config(path=data, **table)


def _judge_shard(
    target: str | None,
    embeddings: tuple[str, str] | None,
    data: DataConfig | None,
    split: str | None,
    shard: str | None,
    statistics: Path | None,
    progress: ProgressLine,
) -> str:
    from mispair.workflows.pair_vectors import subject_of
    from mispair.workflows.shards import judge_shard, parse_shard

    if shard is None or statistics is None:
        raise InputError("a shard needs both options: --shard 3/7 --statistics FOLDER")
    cut = parse_shard(shard)
    return judge_shard(subject_of(target, embeddings, data, split), cut, statistics, progress)


def _quick(first: Path, second: Path, data: str | None, table: dict[str, Any], progress: ProgressLine) -> Verdicts:
    from mispair.workflows.quick_audit import quick_audit_files

    named = _named(data, table)
    if "features" in table:
        raise InputError("--embeddings brings the vectors: leave --features out")
    return quick_audit_files(first, second, data=named, tell=progress)


def _refuse_training_only(
    split: str | None, folds: int | None, truth: bool, truth_column: str | None, cells: bool, texts: str | None
) -> None:
    if split not in (None, "all") or folds or truth or truth_column or cells or texts:
        raise InputError(
            "without training all pairs are judged by the encoder's vectors: leave --split, --folds, --truth,"
            " --truth-column, --cells and --texts out, or add --train"
        )


def _without_training(files: dict[str, Any], how: Encoding, progress: ProgressLine) -> Verdicts:
    from mispair.workflows.audit_pictures import audit_pictures
    from mispair.workflows.embedded_before import embedded_before

    config = data_options.data_config(**files)
    encoder = embedded_before(config).encoder or how.encoder
    typer.echo(
        f"judged by the encoder '{encoder}' alone: nothing is trained on this data (--train does)",
        err=True,
    )
    return audit_pictures(config, how, tell=progress)


def _judge(
    run: Path,
    data: str | None,
    table: dict[str, Any],
    split: str | None,
    folds: int | None,
    truth: bool | str,
    progress: ProgressLine,
) -> Verdicts:
    from mispair.workflows.audit import audit_run
    from mispair.workflows.other_data import read_as
    from mispair.workflows.trained_run import load_run

    loaded = load_run(run)
    unfinished = loaded.unfinished_note()
    if unfinished is not None:
        typer.echo(f"note: {unfinished}", err=True)
    config = loaded.config.data
    if data is not None:
        config = read_as(loaded, data_options.other_data(config, data, table), progress)
    return audit_run(loaded, config, split=split, folds=folds, truth=truth, tell=progress)


def _train(files: dict[str, Any], training: dict[str, Any], folder: Path) -> Path:
    """Train into `folder`, or go on where the same command was stopped or killed."""
    from rich.console import Console

    from mispair.config.load import dump_config, load_config
    from mispair.runtime.engine import leads
    from mispair.runtime.run_folder import RunFolder
    from mispair.shell_word import in_shell
    from mispair.workflows.train import train

    run = RunFolder(folder)
    console = Console(stderr=True, quiet=not leads())
    config = train_options.configure(console, files, training)
    begun = run.begun
    if begun and dump_config(config, folder) != dump_config(load_config(run.config_file), folder):
        raise InputError(
            f"{folder} already holds a run, of another configuration; audit it with:"
            f" mispair audit {in_shell(folder)}, or choose another folder with -o"
        )
    if not (begun and run.finished):
        result = train(config, folder, resume=begun, console=console)
        if result.leads and result.stopped:
            console.print("Stopped and saved. Go on with the same command.", markup=False)
            raise typer.Exit(130)
    if not leads():  # one process judges and writes
        raise typer.Exit
    return folder
