"""`mispair train`: one run, in one folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mispair.cli import data_options as options
from mispair.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from mispair.config.schema import RunConfig


def train(
    data: str = options.DATA,
    second: str | None = options.SECOND,
    config: Path | None = typer.Option(None, "--config", "-c", help="A YAML file; RUN/config.yaml repeats that run."),
    sets: list[str] = typer.Option([], "--set", help="Change one value: --set train.epochs=10. Repeatable."),
    method: str | None = typer.Option(None, help="By name; mispair methods lists them, variants included."),
    model: str | None = typer.Option(
        None, help="vse, sgr, saf or imram; add :paper or :small for the size, small if not said."
    ),
    epochs: int | None = typer.Option(None, help="Epochs, warm-up included."),
    noise: float | None = typer.Option(None, help="Mismatch this share of the training pairs on purpose."),
    seed: int | None = typer.Option(None, help="Same seed, same result. The mismatches have data.noise.seed."),
    out: Path | None = typer.Option(None, "--out", "-o", help="Run folder; by default a new one under runs/."),
    resume: Path | None = typer.Option(None, help="Go on with a run that was stopped or killed."),
    as_json: bool = typer.Option(False, "--json", help="Print the summary as JSON."),
    features: str | None = options.FEATURES,
    ids: str | None = options.IDS,
    image_column: str | None = options.IMAGE_COLUMN,
    caption_column: str | None = options.CAPTION_COLUMN,
    split_column: str | None = options.SPLIT_COLUMN,
    missing: str | None = options.MISSING,
) -> None:
    """Train a retrieval model on pairs that may be wrong.

    `mispair train DATA` alone is enough: it looks at the data and the machine and says what it chose.

    Examples:

      mispair train                                       the embedded world, as it is

      mispair train --noise 0.6 --method plain            the same, 60 % mismatched, trained naively

      mispair train f30k_precomp -c configs/f30k/l2rm-sgr.yaml --noise 0.4

      mispair train pairs.parquet --features images.npy --ids images.txt --missing skip

      mispair train --resume runs/scenes-l2rm-vse-1
    """
    from rich.console import Console

    from mispair.config.assemble import assemble
    from mispair.config.finish import finish
    from mispair.config.load import load_config
    from mispair.runtime.engine import Engine
    from mispair.runtime.journal import Journal

    console = Console(stderr=True)
    files = options.table_options(features, ids, image_column, caption_column, split_column, missing)
    if second is not None:
        files["second"] = second
    if resume is not None:
        _refuse_with_resume(
            None if data == "scenes" else data, config, sets, method, model, epochs, noise, seed, out, *files.values()
        )
        if not (resume / "config.yaml").exists():
            raise InputError(f"{resume} is not a run folder: it has no config.yaml (mispair train makes one)")
        chosen, folder = load_config(resume / "config.yaml"), resume
    else:
        if out is not None and (out / "config.yaml").exists():
            raise InputError(f"{out} already holds a run; choose another -o, or go on with --resume {out}")
        chosen = _configure(console, data, files, config, sets, method, model, epochs, noise, seed)
        folder = out or _new_folder(chosen)
    engine = Engine(chosen.engine)
    with Journal(folder / "metrics.jsonl" if engine.leads else None, console) as journal:
        run = assemble(chosen, folder, engine, journal)
        if resume is not None:
            run.trainer.resume()
        journal.board = _board(folder, engine.leads)
        progress = run.trainer.fit()
    if not engine.leads:
        return
    if progress.stopped:
        console.print(f"Stopped and saved. Go on with: mispair train --resume {folder}", markup=False)
        raise typer.Exit(130)
    summary = finish(run)
    if as_json:
        import json

        typer.echo(json.dumps(summary))
    else:
        _print_summary(summary, folder)


def _configure(
    console: Console,
    data: str,
    files: dict[str, Any],
    config: Path | None,
    sets: list[str],
    method: str | None,
    model: str | None,
    epochs: int | None,
    noise: float | None,
    seed: int | None,
) -> RunConfig:
    from mispair.config.choose import choose
    from mispair.config.load import load_config

    base: dict[str, Any] | None = None
    if config is None:
        # The data section first, as the options say: what is chosen depends on it.
        said = load_config(between={"data": {"path": data, **files}}, sets=[s for s in sets if s.startswith("data.")])
        choice = choose(said.data, epochs)
        base = choice.values
    extra: dict[str, Any] = {}
    if config is not None and (data != "scenes" or files):
        extra["data"] = {**({"path": data} if data != "scenes" else {}), **files}
    if noise is not None:
        extra.setdefault("data", {})["noise"] = {"rate": noise}
    if method is not None:
        extra["method"] = _method(method)
    if model is not None:
        extra["model"] = _model(model)
    if epochs is not None:
        extra["train"] = {"epochs": epochs}
    if seed is not None:
        extra["seed"] = seed
    chosen = load_config(config, sets, base=base, between=extra)
    if config is None:
        for section, reason in choice.reasons.items():
            said_so = section in extra and section != "train"  # --epochs is part of that reason
            if not said_so and not any(s.startswith(f"{section}.") for s in sets):
                console.print(f"[bold]{section:<7}[/bold] {reason}", highlight=False, soft_wrap=True)
    return chosen


def _method(name: str) -> dict[str, Any]:
    from mispair.methods import PRESETS

    if name not in PRESETS:
        raise InputError(f"there is no method {name!r}; the methods are {', '.join(PRESETS)}")
    return PRESETS[name]().model_dump(mode="json")


def _model(name: str) -> dict[str, Any]:
    from mispair.models import preset

    backbone, _, size = name.partition(":")
    return preset(backbone, size or "small").model_dump(mode="json")


def _new_folder(config: RunConfig) -> Path:
    stem = f"{Path(config.data.path).stem}-{config.method.name}-{config.model.name}"
    for number in range(1, 10_000):
        folder = Path("runs") / f"{stem}-{number}"
        if not folder.exists():
            return folder
    raise InputError("runs/ holds ten thousand runs of this name; choose a folder with -o")


def _refuse_with_resume(*given: object) -> None:
    if any(value not in (None, []) for value in given):
        raise InputError("--resume goes on with a run as it was: leave the other options out, or start a new run")


def _board(folder: Path, leads: bool) -> Any:
    """A TensorBoard writer where the extra is installed."""
    import importlib.util

    if not leads or importlib.util.find_spec("tensorboard") is None:
        return None
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder / "tensorboard"))


def _print_summary(summary: dict[str, Any], folder: Path) -> None:
    from rich.console import Console

    from mispair.cli.tables import recall_table

    rows = {split: summary[split] for split in ("dev", "test") if summary.get(split)}
    Console().print(recall_table(rows, f"{summary['method']} on {summary['model']}"))
    if "mismatch_rate" in summary:
        low, high = summary["mismatch_rate_ci"]
        typer.echo(f"Estimated mismatched share: {summary['mismatch_rate']:.3f} ({low:.3f} to {high:.3f}).")
    typer.echo(f"Everything is in {folder}; its README.md is the model card.")
