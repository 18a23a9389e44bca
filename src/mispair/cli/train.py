"""`mispair train`: one run, in one folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mispair.cli.options import data as data_options
from mispair.cli.options import encoding as encode_options
from mispair.cli.options import training as train_options
from mispair.cli.options.grouping import grouped
from mispair.counted import counted
from mispair.errors import InputError

if TYPE_CHECKING:
    from mispair.config.schema import RunConfig


@grouped
def train(
    data: str | None = typer.Argument(None, help=data_options.DATA_HELP),
    second: str | None = data_options.SECOND,
    config: Path | None = typer.Option(
        None, "--config", "-c", help="A YAML file or a name such as f30k/l2rm-sgr; RUN/config.yaml repeats that run."
    ),
    noise: str | None = typer.Option(
        None,
        metavar="SHARE|INDEX",
        help="Mismatch this share of the training pairs on purpose; or as an index says (.npy, mispair corrupt).",
    ),
    out: Path | None = typer.Option(None, "--out", "-o", help="Run folder; by default a new one under runs/."),
    resume: Path | None = typer.Option(None, help="Go on with a run that was stopped or killed."),
    as_json: bool = typer.Option(False, "--json", help="Print the summary as JSON."),
    tune: str | None = typer.Option(
        None, "--tune", help="What of the encoder learns: head, on its frozen vectors; lora or full, on the pictures."
    ),
    decisions: str | None = typer.Option(
        None, "--decisions", help="What reviewers decided (mispair review): taken as known. AUDIT/decisions.jsonl."
    ),
    *,
    training: train_options.TrainingOptions,
    table: data_options.WeightedTableOptions,
    pictures: data_options.PictureOptions,
    encode: encode_options.EncodeBothOptions,
) -> None:
    """Train a retrieval model on pairs that may be wrong.

    `mispair train DATA` alone is enough: it looks at the data and the machine and says what it chose.

    Examples:

      mispair train                                       the embedded world, as it is

      mispair train --noise 0.6 --method plain            the same, 60 % mismatched, trained naively

      mispair train f30k_precomp -c f30k/l2rm-sgr --noise 0.4

      mispair train pairs.csv --images photos             pictures: encoded once, kept in the cache

      mispair train pairs.csv --images photos --encoder clip-b32 --tune lora

      mispair train pairs.parquet --features images.npy --ids images.txt --missing skip

      mispair train --resume runs/scenes-l2rm-vse-1
    """
    from rich.console import Console

    from mispair.cli.progress import ProgressLine
    from mispair.config.load import load_config
    from mispair.runtime.engine import leads
    from mispair.runtime.run_folder import RunFolder
    from mispair.shell_word import in_shell
    from mispair.workflows.embedded_before import as_embedded
    from mispair.workflows.new_folder import new_folder
    from mispair.workflows.refuse_unfit import refuse_unknown
    from mispair.workflows.train import train as train_run

    console = Console(stderr=True, quiet=not leads())
    files = table.section() | pictures.section()
    files |= {
        key: value for key, value in (("path", data), ("second", second), ("decisions", decisions)) if value is not None
    }
    refuse_unknown(training.method, training.model, tune)
    options = training.said() | ({} if tune is None else {"tune": tune})
    if noise is not None:
        options["noise"] = noise
    if resume is not None:
        if files or options or encode.asked or config is not None or out is not None:
            raise InputError("--resume goes on with a run as it was: leave the other options out, or start a new run")
        run = RunFolder(resume)
        run.refuse_unless_begun()
        chosen, folder = load_config(run.config_file), resume
    else:
        if out is not None and RunFolder(out).begun:
            raise InputError(f"{out} already holds a run; choose another -o, or go on with --resume {out}")
        if config is None:
            files.setdefault("path", "scenes")
        if tune in ("lora", "full"):
            files |= encode.live(f"--tune {tune}")
        elif "path" in files:
            how = encode.encoding(training.device, training.model if tune is None else "dual")
            with ProgressLine() as progress:
                files = encode_options.encoded_values(
                    files, how, encode.asked, progress, file=config, sets=training.sets
                )
        elif encode.asked:
            raise InputError(
                "--encoder, --cells and --texts encode the pictures of data: name the data, or leave them out"
            )
        chosen = as_embedded(train_options.configure(console, files, options, config))
        folder = out or new_folder(chosen)
    result = train_run(chosen, folder, resume=resume is not None, console=console, board=True)
    if not result.leads:
        return
    encode_options.tell_failed(chosen.data.features, folder)
    if result.stopped:
        console.print(f"Stopped and saved. Go on with: mispair train --resume {in_shell(folder)}", markup=False)
        raise typer.Exit(130)
    if as_json:
        import json

        typer.echo(json.dumps(result.summary))
    else:
        _print_summary(result.summary, folder, chosen)


def _print_summary(summary: dict[str, Any], folder: Path, config: RunConfig) -> None:
    from rich.console import Console

    from mispair.auditing.rate_words import training_rate_words
    from mispair.cli.recall_table import recall_caution, recall_table
    from mispair.cli.whole_table import print_whole
    from mispair.shell_word import in_shell

    rows = {split: summary[split] for split in ("dev", "test") if summary.get(split)}
    print_whole(Console(), recall_table(rows, f"{summary['method']} on {summary['model']}"))
    if rows and (caution := recall_caution(config.data)) is not None:
        typer.echo(caution)
    if config.method.warmup >= config.train.epochs:
        epochs = counted(config.train.epochs, "epoch was", "epochs were")
        typer.echo(f"{epochs} all warm-up: training split no pairs yet. Train longer for that.")
    if (words := training_rate_words(summary)) is not None:
        typer.echo(words)
    typer.echo(f"Everything is in {folder}; its README.md is the model card.")
    if words is not None:
        typer.echo(f"Next: mispair audit {in_shell(folder)}")
