"""From what somebody said to a whole configuration; what nobody said is chosen from the data and the machine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mispair.config.load import load_config, merge_values, validate
from mispair.config.schema import RunConfig
from mispair.counted import counted
from mispair.data import DataConfig
from mispair.data.config import noise_values
from mispair.data.readers.dispatch import open_pairing
from mispair.data.scenes.boxes import REGIONS
from mispair.errors import InputError
from mispair.methods import method_preset
from mispair.models import model_preset

_PAIRS_SEEN = 130_000  # what the small global model wants to see of a small data set: 1,000 steps of 128
_PAIRS_BEFORE_JUDGING = 18_000  # 140 steps: enough to tell pairs apart, not enough to learn them by heart
# Where images have one text each, nothing else holds a network back from learning wrong pairs by heart.
_HELD_BACK = {"average": 0.99, "drop_words": 0.2}
_DROP_REGIONS = 0.5
_FINE_PAIRS_SEEN = 3_000_000
# What people who fine-tune such encoders use; not measured here, where no weights of theirs can be had.
_OF_TOWERS: dict[str, dict[str, Any]] = {
    "lora": {"lr": 1e-4, "schedule": "cosine", "average": 0.99, "crop": 0.8, "drop_regions": 0.0},
    "full": {"lr": 1e-5, "schedule": "cosine", "average": 0.99, "crop": 0.8, "drop_regions": 0.0},
}
_TOWER_PAIRS_SEEN = 1_000_000


@dataclass(frozen=True)
class Choice:
    """Configuration values to start from, and why."""

    values: dict[str, Any]
    reasons: dict[str, str]  # by section: model, method, train


def configure(
    data: Mapping[str, Any],
    *,
    config: Path | None = None,
    base: dict[str, Any] | None = None,
    method: str | Mapping[str, Any] | None = None,
    model: str | Mapping[str, Any] | None = None,
    epochs: int | None = None,
    batch_size: int | None = None,
    lr: float | None = None,
    device: str | None = None,
    seed: int | None = None,
    noise: float | str | None = None,
    sets: Sequence[str] = (),
    tune: str | None = None,
) -> tuple[RunConfig, dict[str, str]]:
    """The configuration, and for every section that was chosen here the reason.

    Args:
        data: values of the data section that were said: path, second, features, ...
        config, base: a file or values to start from instead of what the data suggests.
        noise: share of the training pairs to mismatch, or an index that says how (.npy, mispair corrupt).
        method, model: by name ("l2rm-paper", "sgr:paper"), or values of the section.
        sets: "section.name=value", last word.
        tune: what of an encoder learns: head, lora or full; the model is then dual.
    """
    said: dict[str, Any] = {"data": dict(data)} if data else {}
    reasons: dict[str, str] = {}
    choosing = config is None and base is None
    if choosing:
        # The data section first, as it was said: what is chosen depends on it.
        tuned = {"model": {"name": "dual", "tune": tune}} if tune is not None else {}
        first = load_config(between=said | tuned, sets=[s for s in sets if s.startswith("data.")])
        choice = choose(first.data, epochs)
        base, reasons = choice.values, dict(choice.reasons)
    if tune is not None:
        said["model"], model = _tuned(model, merge_values(config, (), base)["model"], tune), None
        if choosing and base is not None:
            base = {**base, "train": {**base["train"], **_OF_TOWERS.get(tune, {})}}
    if noise is not None:
        said.setdefault("data", {})["noise"] = noise_values(noise)
    if method is not None:
        said["method"] = method_preset(method).model_dump(mode="json") if isinstance(method, str) else dict(method)
    if model is not None:
        said["model"] = _model(model) if isinstance(model, str) else dict(model)
    budget = {"epochs": epochs, "batch_size": batch_size, "lr": lr}
    train = {key: value for key, value in budget.items() if value is not None}
    said |= {"train": train} if train else {}
    said |= {"engine": {"device": device}} if device is not None else {}
    said |= {"seed": seed} if seed is not None else {}
    values = merge_values(config, sets, base, said)
    if epochs is not None:
        _shorten_warmup(values, sets)
    whole = validate(values, str(config) if config else "the configuration")
    spoken = {section for section in said if section != "train" or set(train) != {"epochs"}}
    spoken |= {assignment.partition(".")[0] for assignment in sets}
    return whole, {section: reason for section, reason in reasons.items() if section not in spoken}


def choose(config: DataConfig, epochs: int | None = None) -> Choice:
    """Backbone, size and budget for this data on this machine; `epochs` if somebody has said how many."""
    pairs, images, regions = _measure(config)
    alone = pairs == images
    accelerator = torch.cuda.is_available()
    if regions > 1 and accelerator:
        model: dict[str, Any] = {"name": "sgr"}
        why = f"sgr, the paper's backbone: {regions} regions per {config.sides[0]} and a GPU"
        chosen = _within(round(_FINE_PAIRS_SEEN / pairs), 20, 40)
        lr = 2e-4
    elif config.live:
        model, lr = {"name": "dual", "embed": 512}, 1e-5
        why = "dual: the towers of an encoder, which read the pictures themselves"
        chosen = _within(round(_TOWER_PAIRS_SEEN / pairs), 3, 20)
    elif _frozen_towers(config, regions):
        model, lr = {"name": "dual", "embed": 512, "hidden": 1024, "dropout": 0.5}, 3e-4
        why = "dual: a head on the vectors an encoder made of both sides"
        chosen = _within(round(_PAIRS_SEEN / pairs), 8, 20)
    else:
        model = {"name": "vse", "embed": 512, "words": "bag"}
        because = "one vector per item" if regions == 1 else "no GPU, and region models take hours on a CPU"
        why = f"vse (small), one cosine per pair: {because}"
        chosen = _within(round(_PAIRS_SEEN / pairs), 10, 100 if alone else 20)
        lr = 1e-3 if pairs < 20_000 else 5e-4
    batch = 128 if pairs >= 1280 else max(2, 2 ** ((pairs // 10).bit_length() - 1))
    total = epochs or chosen
    warmup = _warmup(total)
    train: dict[str, Any] = {
        "epochs": total,
        "batch_size": batch,
        "lr": lr,
        "decay_at": [max(1, round(0.7 * total))],
    }
    method: dict[str, Any] = {"name": "l2rm"}
    if alone:
        warmup = min(_within(round(_PAIRS_BEFORE_JUDGING / pairs), 2, 40), _most_warmup(total))
        train |= _HELD_BACK | ({"drop_regions": _DROP_REGIONS} if regions > 1 else {})
        if epochs is None:
            train["patience"] = max(4, round(0.3 * total), warmup + 1)  # no training ends before it has rematched
    method["warmup_epochs"] = warmup
    steps = math.ceil(pairs / batch)
    after = f"after {counted(warmup, 'epoch')}"
    then = f"tells matched from mismatched pairs {after}, then rematches" if warmup < total else "warm-up"
    stop = f", fewer when dev gets no better for {train['patience']}" if "patience" in train else ""
    return Choice(
        {"data": config.model_dump(mode="json"), "model": model, "method": method, "train": train},
        {
            "model": f"{why} (change: --model)",
            "method": f"l2rm: {then} (--method)",
            "train": f"{counted(total, 'epoch')} of {counted(steps, 'step')}, {pairs:,} pairs in batches of"
            f" {batch}{stop}"
            " (--epochs, --batch-size, --lr)",
        },
    )


def _frozen_towers(config: DataConfig, regions: int) -> bool:
    """Whether both sides are one vector per item, made by an encoder."""
    return config.encoder is not None and config.second is not None and regions == 1


def _shorten_warmup(values: dict[str, Any], sets: Sequence[str]) -> None:
    """A warm-up that nobody asked for gives way where few epochs were asked for."""
    method, epochs = values.get("method"), (values.get("train") or {}).get("epochs")
    asked = any(assignment.partition("=")[0].strip() == "method.warmup_epochs" for assignment in sets)
    if asked or not isinstance(method, dict) or type(epochs) is not int or epochs < 1:
        return
    warmup = method.get("warmup_epochs")
    if type(warmup) is int and warmup >= epochs:
        values["method"] = {**method, "warmup_epochs": _warmup(epochs)}


def _warmup(epochs: int) -> int:
    return max(1, min(5, round(0.25 * epochs)))


def _most_warmup(epochs: int) -> int:
    """Where few epochs were asked for, at least half of them are left for what comes after the warm-up."""
    return max(1, epochs // 2)


def _tuned(model: str | Mapping[str, Any] | None, before: dict[str, Any], tune: str) -> dict[str, Any]:
    """A dual that tunes this: as it was said, else as it was `before` where that tunes the same, else small."""
    section = _model(model) if isinstance(model, str) else dict(model or {"name": "dual"})
    if section.get("name") != "dual":
        raise InputError(f"--tune is for the model dual, and --model says {section.get('name')}; leave one of them out")
    if model is None:
        section = before if before["name"] == "dual" and before.get("tune", tune) == tune else _model("dual")
    return {**section, "tune": tune}


def _model(name: str) -> dict[str, Any]:
    backbone, _, size = name.partition(":")
    return model_preset(backbone, size or "small").model_dump(mode="json")


def _measure(config: DataConfig) -> tuple[int, int, int]:
    """Pairs, distinct images and regions of the train split; of generated data, no picture has to be drawn for it."""
    source = open_pairing(config, "train")
    images = len(np.unique(source.image_of_text))
    regions = source.images.regions if source.images is not None else 1 if config.live else REGIONS
    return len(source.image_of_text), images, regions


def _within(value: int, low: int, high: int) -> int:
    return min(max(value, low), high)
