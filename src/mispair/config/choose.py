"""What to train when nobody says: a look at the data and the machine, and the reasons in three lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from mispair.data import DataConfig
from mispair.data.scenes.boxes import REGIONS
from mispair.data.sources import open_pairing

_PAIRS_SEEN = 130_000  # what the small global model wants to see of a small data set
_FINE_PAIRS_SEEN = 3_000_000


@dataclass(frozen=True)
class Choice:
    """Configuration values to start from, and why."""

    values: dict[str, Any]
    reasons: dict[str, str]  # by section: model, method, train


def choose(config: DataConfig, epochs: int | None = None) -> Choice:
    """Backbone, size and budget for this data on this machine; `epochs` if somebody has said how many."""
    pairs, regions = _look(config)
    accelerator = torch.cuda.is_available()
    if regions > 1 and accelerator:
        model: dict[str, Any] = {"name": "sgr"}
        why = f"sgr, the paper's backbone: {regions} regions per {config.sides[0]} and a GPU"
        epochs = epochs or _within(round(_FINE_PAIRS_SEEN / pairs), 20, 40)
        lr = 2e-4
    else:
        model = {"name": "vse", "embed": 512, "words": "bag"}
        because = "one vector per item" if regions == 1 else "no GPU, and region models take hours on a CPU"
        why = f"vse (small), one cosine per pair: {because}"
        epochs = epochs or _within(round(_PAIRS_SEEN / pairs), 10, 20)
        lr = 1e-3 if pairs < 20_000 else 5e-4
    batch = 128 if pairs >= 1280 else max(2, 2 ** ((pairs // 10).bit_length() - 1))
    decay = max(1, round(0.7 * epochs))
    warmup = max(1, min(5, round(0.25 * epochs)))
    values = {
        "data": config.model_dump(mode="json"),
        "model": model,
        "method": {"name": "l2rm", "warmup_epochs": warmup},
        "train": {"epochs": epochs, "batch_size": batch, "lr": lr, "decay_at": [decay]},
    }
    return Choice(
        values,
        {
            "model": f"{why} (change: --model)",
            "method": f"l2rm: tells matched from mismatched pairs after {warmup} epochs, then rematches (--method)",
            "train": f"{epochs} epochs of {pairs:,} pairs in batches of {batch} (--epochs, --set train.lr=...)",
        },
    )


def _look(config: DataConfig) -> tuple[int, int]:
    """Pairs and regions of the train split; of generated data, no picture has to be drawn for it."""
    source = open_pairing(config, "train")
    return len(source.image_of_text), source.images.regions if source.images is not None else REGIONS


def _within(value: int, low: int, high: int) -> int:
    return min(max(value, low), high)
