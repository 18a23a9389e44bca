"""Train, load and evaluate from Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mispair.api.data_section import data_values
from mispair.api.run_config import encoded_values, live_values, run_config
from mispair.errors import InputError

if TYPE_CHECKING:
    from torch import nn

    from mispair.config.schema import RunConfig
    from mispair.data import DataConfig
    from mispair.encoders.protocol import Encoder
    from mispair.models import InputSizes
    from mispair.retrieval.scoring import Precision
    from mispair.runtime.trainer import EpochReport
    from mispair.section import Section
    from mispair.workflows.trained_run import TrainedRun

    PathLike = str | os.PathLike[str]
    Model = str | Section | Mapping[str, Any] | nn.Module | Callable[[InputSizes], nn.Module]


def train(
    data: PathLike | DataConfig | None = None,
    *,
    method: str | Section | Mapping[str, Any] | None = None,
    model: Model | None = None,
    out: PathLike | None = None,
    epochs: int | None = None,
    batch_size: int | None = None,
    lr: float | None = None,
    device: str | None = None,
    seed: int | None = None,
    noise: float | PathLike | None = None,
    second: PathLike | None = None,
    features: PathLike | None = None,
    ids: PathLike | None = None,
    columns: Mapping[str, str] | None = None,
    missing: str | None = None,
    images: PathLike | None = None,
    encoder: str | Encoder | None = None,
    tune: str | None = None,
    weights: str | None = None,
    decisions: PathLike | None = None,
    config: PathLike | RunConfig | None = None,
    options: Mapping[str, Any] | None = None,
    resume: PathLike | None = None,
    on_epoch: Callable[[EpochReport], None] | None = None,
    quiet: bool = False,
) -> TrainedRun:
    """Train a retrieval model on pairs that may be wrong. What is not said is chosen from the data and the machine.

    Args:
        data: a precomputed folder, a table (.csv .tsv .jsonl .parquet), a first .npy, "scenes" for the generated world
            (the default), or a `mispair.data.DataConfig`.
        method: a name that `mispair.list_methods()` shows, or the method's configuration or its values as a dictionary.
        model: "vse", "dual", "sgr", "saf" or "imram", with ":paper" or ":small" behind it; a model's configuration or
            its values, {"name": "vse", "embed": 256};
            a network of your own that keeps `mispair.protocols.RetrievalModel`; or a function (a class) that makes
            one from its `mispair.models.InputSizes`, which methods with several networks need.
        out: the run folder; by default a new one under runs/.
        epochs, batch_size, lr, device, seed: as their names say.
        noise: mismatch this share of the training pairs on purpose, or as an index says that `mispair.corrupt` wrote.
        second: the second side's .npy, where it has no words.
        features, ids: for a table, the image features (.npy) and which image each row of them is.
        columns: for a table, names of the columns image, caption, split and id.
        missing: "refuse" or "skip" pairs whose image has no features or no picture.
        images, encoder: where the pictures are, and what encodes them; `mispair.embed` says more.
        tune: what of the encoder learns: "head", on its frozen vectors; "lora" or "full", on the pictures. The model is
            then dual.
        weights: how much each training pair counts: a column of the table, or "W" for train_W.npy or W.npy beside
            arrays.
        decisions: the decisions.jsonl of a review; the method takes those pairs as known.
        config: a YAML file or a configuration to start from; nothing is chosen then.
        options: further values by their name in the configuration, {"train.patience": 3}.
        resume: a run folder to go on with, instead of all of the above but `model` where it is a network of your own.
        on_epoch: called after every epoch with an `EpochReport` (epoch, dev, train, seconds, best, last).
        quiet: show no progress.

    Returns:
        The run with its best networks, as `mispair.load` gives it.

    Raises:
        InputError: something of this cannot be used; the message says what and what would be right.
        KeyboardInterrupt: a signal stopped it; everything is saved and `resume` goes on.

    Example:
        >>> run = mp.train("pairs.parquet", features="images.npy", method="l2rm", model="vse", out="runs/a")
        >>> run.metrics["test"]["rsum"]
    """
    from rich.console import Console

    from mispair.config.load import load_config
    from mispair.runtime.run_folder import RunFolder
    from mispair.workflows.embedded_before import as_embedded
    from mispair.workflows.networks import as_network
    from mispair.workflows.new_folder import new_folder
    from mispair.workflows.refuse_unfit import refuse_unknown
    from mispair.workflows.train import train as train_run

    network = as_network(model)
    console = Console(stderr=True, quiet=quiet)
    if resume is not None:
        said = (
            data, method, out, epochs, batch_size, lr, device, seed, noise, second, features, ids, columns, missing,
            images, encoder, tune, weights, decisions, config, options,
        )  # fmt: skip
        if any(value is not None for value in said) or (model is not None and network is None):
            raise InputError("resume goes on with a run as it was: leave the other arguments out, or start a new run")
        folder = Path(resume)
        run = RunFolder(folder)
        run.refuse_unless_begun()
        chosen = load_config(run.config_file)
    else:
        refuse_unknown(method, model, tune)
        values = data_values(data, {
            "second": second, "features": features, "ids": ids, "images": images, "decisions": decisions,
            "missing": missing, "columns": columns, "weights": weights,
        })  # fmt: skip
        if tune in ("lora", "full"):
            values |= live_values(values, encoder, tune)
        elif data is not None:
            values |= encoded_values(values, encoder, None if network is not None else model)
        elif encoder is not None:
            raise InputError("encoder= encodes the pictures of data: name the data too, or leave the encoder out")
        if data is None and config is None:
            values = {"path": "scenes", **values}
        chosen, reasons = run_config(values, config, method, model, network, options, {
            "epochs": epochs, "batch_size": batch_size, "lr": lr, "device": device, "seed": seed, "tune": tune,
            "noise": noise if noise is None or isinstance(noise, float | int) else str(noise),
        })  # fmt: skip
        chosen = as_embedded(chosen)
        for section, reason in reasons.items():
            console.print(f"{section:<7} {reason}", highlight=False, soft_wrap=True, markup=False)
        folder = Path(out) if out is not None else new_folder(chosen)
    result = train_run(chosen, folder, resume=resume is not None, on_epoch=on_epoch, network=network, console=console)
    if result.stopped:
        raise KeyboardInterrupt(f"stopped and saved; go on with mispair.train(resume={str(folder)!r})")
    return load(folder, model=network)


def load(run: PathLike, *, model: Model | None = None, device: str | None = None) -> TrainedRun:
    """Open a run folder: its best networks, configuration, metrics and history.

    Args:
        run: what `mispair.train` or `mispair train` wrote.
        model: the network, where it is one of your own: the same class, or a network of the same shape.
        device: where to put it; the processor by default.

    Returns:
        A `TrainedRun`: `.config .metrics .history .models`, `encode_images`, `encode_texts`, `score`, `evaluate`.

    Raises:
        InputError: it is no run folder, or a file in it is damaged.

    Example:
        >>> run = mp.load("runs/a")
        >>> run.score(features, ["a dog on a beach", "two cats"]).argmax(1)
    """
    import torch

    from mispair.devices import find_device
    from mispair.workflows.networks import as_network
    from mispair.workflows.trained_run import load_run

    if not isinstance(run, (str, os.PathLike)):
        raise InputError(f"a run is a run folder or what mispair.load gave, got {type(run).__name__}")
    network = as_network(model)
    if model is not None and network is None:
        raise InputError("model is for a network of your own; a run knows which of our models it has")
    return load_run(Path(run), None if device is None else torch.device(find_device(device)), network)


def open_runs(run: PathLike | TrainedRun | Sequence[PathLike | TrainedRun]) -> list[TrainedRun]:
    """One run or several, by their folders or loaded before, as a list of loaded ones."""
    from mispair.workflows.trained_run import TrainedRun

    runs = run if isinstance(run, Sequence) and not isinstance(run, str) else [run]
    return [one if isinstance(one, TrainedRun) else load(one) for one in runs]


def evaluate(
    run: PathLike | TrainedRun | Sequence[PathLike | TrainedRun],
    split: str = "test",
    *,
    data: PathLike | DataConfig | None = None,
    folds: int | None = None,
    shortlist: int | None = None,
    precision: Precision = "fp32",
) -> dict[str, float]:
    """Recalls of a run, or of several together, on a split, in percent, and their sum.

    Args:
        run: a run folder, or what `mispair.load` gave; of a list the mean score ranks, as an ensemble (SGRAF).
        split: which split to rank.
        data: other data than the run's own: a path, read as the run reads its own and its pictures encoded likewise, or
            a `mispair.data.DataConfig`.
        folds: average over so many equal galleries (COCO 1K: 5).
        shortlist: score only so many candidates per query with the full model.
        precision: "fp32", or "bf16" where the processor has it.

    Returns:
        i2t_r1, i2t_r5, i2t_r10, t2i_r1, t2i_r5, t2i_r10, rsum, ...

    Example:
        >>> mp.evaluate("runs/a")["rsum"]
    """
    from mispair.workflows.evaluate_runs import evaluate_runs
    from mispair.workflows.other_data import other_data

    loaded = open_runs(run)
    others = [None if data is None else other_data(one, data) for one in loaded]
    return evaluate_runs(loaded, split, others, folds=folds, shortlist=shortlist, precision=precision)[0]
