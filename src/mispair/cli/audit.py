"""`mispair audit`: which pairs are wrong, what kind of wrong, and what they should have been."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mispair.cli.audit_shards import ShardedAudit
from mispair.cli.audit_target import is_pictures, refuse_data
from mispair.cli.options import data as data_options
from mispair.cli.options import encoding as encode_options
from mispair.cli.options import shards as shard_options
from mispair.cli.options import training as train_options
from mispair.cli.options.grouping import grouped
from mispair.errors import InputError
from mispair.missing_path import does_not_exist

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
    refuse_unknown(training.method, training.model, None)
    asked = _Asked(
        target, second, data, described, split, folds, truth, truth_column, training.said(),
        encode.encoding(training.device, training.model), encode,
    )  # fmt: skip
    if second is not None and not train:
        raise InputError(f"{second} is one argument too many: only --train takes two files, the two sides of the data")
    if address is not None and engine is None:
        raise InputError("--address names a cluster: add --engine ray")
    if engine is not None or alone:
        if train or truth or folds or truth_column or budget or csv or asked.training:
            raise InputError(
                "a shard is judged as it is: leave training, --device, --folds, --truth, --budget and --csv out"
            )
        sharded = ShardedAudit(target, embeddings, asked.table(), split, shard, statistics, encode)
        if engine is None:
            typer.echo(sharded.judge_one(as_json))
            return
        print_verdicts(sharded.judge_on_cluster(engine, address, out), out, None, as_json)
        return
    with ProgressLine() as progress:
        if embeddings is not None:
            verdicts = _by_vectors(asked, *embeddings, train, progress)
        elif target is None:
            raise InputError("say what to audit: a run folder, data with --train, or --embeddings a.npy b.npy")
        elif train:
            verdicts = _by_training(asked, target, out / "run", progress)
        else:
            verdicts = _without_training(asked, target, progress)
    verdicts.save(out)
    judged = verdicts.facts.data.get("config")
    encode_options.tell_failed(judged.get("features") if isinstance(judged, dict) else None, out)
    if csv:
        verdicts.to_csv(out / "audit.csv")
    print_verdicts(verdicts, out, budget, as_json)


@dataclass(frozen=True)
class _Asked:
    """What was said of the data and of the judge, whichever of them it is."""

    target: str | None
    second: str | None
    data: str | None
    described: dict[str, Any]  # the options that say how data is read
    split: str | None
    folds: int | None
    truth: bool
    truth_column: str | None
    training: dict[str, Any]
    encoding: Encoding
    encode: encode_options.EncodeBothOptions

    def table(self) -> DataConfig | None:
        """The table that --data names, as the other options describe it."""
        if self.data is None and self.described:
            raise InputError("features, ids and columns describe a table: name it with --data")
        return None if self.data is None else data_options.data_config(path=self.data, **self.described)

    def files(self, target: str) -> dict[str, Any]:
        """TARGET and the second side as values of a data section."""
        return {"path": target, **({"second": self.second} if self.second is not None else {}), **self.described}


def _by_vectors(asked: _Asked, first: Path, second: Path, train: bool, progress: ProgressLine) -> Verdicts:
    """Two arrays as they are."""
    from mispair.workflows.quick_audit import quick_audit_files

    others = (asked.target, asked.second, asked.split, asked.folds, asked.truth_column)
    if train or asked.truth or asked.training or any(value is not None for value in others):
        raise InputError(
            "--embeddings judges two arrays as they are, with --data naming the rows of a table: leave the run"
            " and the other options out"
        )
    named = asked.table()
    if "features" in asked.described:
        raise InputError("--embeddings brings the vectors: leave --features out")
    return quick_audit_files(first, second, data=named, tell=progress)


def _by_training(asked: _Asked, target: str, run: Path, progress: ProgressLine) -> Verdicts:
    """The data by networks that are trained on it, into the folder `run`."""
    if asked.data is not None:
        raise InputError("--train judges what it trains on: leave --data out, or audit the run afterwards")
    files = encode_options.encoded_values(
        asked.files(target), asked.encoding, asked.encode.asked, progress, sets=asked.training.get("sets", ())
    )
    return _by_run(asked, _train(files, asked.training, run), progress)


def _without_training(asked: _Asked, target: str, progress: ProgressLine) -> Verdicts:
    """A run's data, or others, by the run; pictures by the encoder."""
    from mispair.data.files.tar_names import names_nothing

    if names_nothing(target):
        raise InputError(f"{does_not_exist(target)}; expected a run folder, or data with --images or --train")
    by_encoder = asked.data is None and is_pictures(asked.files(target))
    if asked.data is None and asked.described and not by_encoder:
        raise InputError("features, ids, columns and images describe other data: name it with --data")
    if asked.training.keys() - {"device"}:
        raise InputError("a run is audited as it is: leave the options of training out, or add --train")
    if by_encoder:
        return _by_encoder(asked, target, progress)
    refuse_data(target)
    return _by_run(asked, Path(target), progress)


def _by_encoder(asked: _Asked, target: str, progress: ProgressLine) -> Verdicts:
    from mispair.workflows.audit_pictures import audit_pictures
    from mispair.workflows.embedded_before import embedded_before

    trained_only = asked.folds or asked.truth or asked.truth_column or asked.encode.cells or asked.encode.texts
    if asked.split not in (None, "all") or trained_only:
        raise InputError(
            "without training all pairs are judged by the encoder's vectors: leave --split, --folds, --truth,"
            " --truth-column, --cells and --texts out, or add --train"
        )
    config = data_options.data_config(**asked.files(target))
    encoder = embedded_before(config).encoder or asked.encoding.encoder
    typer.echo(f"judged by the encoder '{encoder}' alone: nothing is trained on this data (--train does)", err=True)
    return audit_pictures(config, asked.encoding, tell=progress)


def _by_run(asked: _Asked, run: Path, progress: ProgressLine) -> Verdicts:
    from mispair.workflows.audit import audit_run
    from mispair.workflows.other_data import read_as
    from mispair.workflows.trained_run import load_run

    loaded = load_run(run)
    unfinished = loaded.unfinished_note()
    if unfinished is not None:
        typer.echo(f"note: {unfinished}", err=True)
    config = loaded.config.data
    if asked.data is not None:
        config = read_as(loaded, data_options.other_data(config, asked.data, asked.described), progress)
    truth = asked.truth_column or asked.truth
    return audit_run(loaded, config, split=asked.split, folds=asked.folds, truth=truth, tell=progress)


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
