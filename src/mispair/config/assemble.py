"""From a configuration to a trainer, and from a run folder back to models that score."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from mispair.config.load import dump_config, load_config
from mispair.config.schema import RunConfig
from mispair.data import DataConfig, PairData, open_split
from mispair.data.text import Vocabulary
from mispair.errors import InputError
from mispair.methods import build_method
from mispair.models import InputSizes, build_model
from mispair.protocols import RetrievalModel
from mispair.retrieval.evaluate import RecallEvaluator
from mispair.runtime.checkpoint import load_model, write_text
from mispair.runtime.engine import Engine
from mispair.runtime.journal import Journal
from mispair.runtime.randomness import Streams, seed_globally
from mispair.runtime.trainer import Trainer


@dataclass(frozen=True)
class Assembly:
    """Everything a training needs, ready to `trainer.fit()`."""

    config: RunConfig
    folder: Path
    trainer: Trainer
    train: PairData
    dev: PairData


def assemble(config: RunConfig, folder: Path, engine: Engine, journal: Journal) -> Assembly:
    """Open the data, build the networks and the method around them."""
    seed_globally(config.seed)
    streams = Streams(config.seed)
    train = open_split(config.data, "train")
    dev = open_split(config.data, "dev", vocabulary=train.vocabulary)
    sizes = input_sizes(train)
    method = build_method(config.method, lambda: build_model(config.model, sizes), config.train.batch_size)
    about = {
        "configuration": hashlib.sha256(dump_config(config).encode()).hexdigest(),
        "data": train.content_hash,
        "noise": train.noise_hash or "none",
        "sizes": json.dumps(sizes.model_dump()),
    }
    trainer = Trainer(config.train, engine, train, method, RecallEvaluator(dev), journal, streams, folder, about)
    if engine.leads and not (folder / "config.yaml").exists():  # a run that is taken up again keeps what it has
        if train.vocabulary is not None:
            write_text(folder / "vocabulary.json", train.vocabulary.to_json())
        write_text(folder / "config.yaml", dump_config(config))
    return Assembly(config, folder, trainer, train, dev)


def input_sizes(data: PairData) -> InputSizes:
    """What a model must know of the data. Region slots are fixed only where every image fills all of them."""
    words = data.vocabulary is not None
    return InputSizes(
        image_width=data.images.width,
        vocabulary_size=len(data.vocabulary) if data.vocabulary is not None else None,
        text_width=None if words else data.texts.width,  # type: ignore[union-attr]
        regions=data.images.regions if data.images.lengths is None else None,
    )


@dataclass(frozen=True)
class LoadedRun:
    """A finished (or stopped) run: its configuration, its words and the models that score."""

    folder: Path
    config: RunConfig
    vocabulary: Vocabulary | None
    models: list[RetrievalModel]
    about: dict[str, str]

    def open_split(self, split: str, data: DataConfig | None = None) -> PairData:
        """A split of the run's data, or of other data, in the run's words."""
        return open_split(data or self.config.data, split, vocabulary=self.vocabulary)


def read_summary(folder: Path) -> dict[str, Any]:
    """What a finished run wrote of itself; nothing while it is not finished."""
    path = folder / "metrics.json"
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        raise InputError(
            f"{path} is damaged; train the run again, or delete the file and go on with --resume"
        ) from None


def load_run(folder: Path, device: torch.device | None = None) -> LoadedRun:
    """The best models of a run, in evaluation mode."""
    if not (folder / "config.yaml").exists():
        raise InputError(f"{folder} is not a run folder: it has no config.yaml (mispair train makes one)")
    config = load_config(folder / "config.yaml")
    states, about = load_model(folder / "model.safetensors")
    sizes = InputSizes.model_validate(json.loads(about["sizes"]))
    models: list[RetrievalModel] = []
    for state in states.values():
        model: nn.Module = build_model(config.model, sizes)
        model.load_state_dict(state)
        models.append(model.to(device or torch.device("cpu")).eval())  # type: ignore[arg-type]
    words = folder / "vocabulary.json"
    return LoadedRun(folder, config, Vocabulary.load(words) if words.exists() else None, models, about)
