"""After the last epoch: the stand-ins of the best models catch up with them, so that shortlists can be trusted."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from mispair.config.assemble import Assembly, load_run
from mispair.models import polish
from mispair.runtime.checkpoint import save_model

BATCHES, SIZE = 10, 128


def polish_stand_ins(assembly: Assembly) -> None:
    """Fit the stand-in of every saved model to its logits on training pairs; nothing where no model has one."""
    folder, train = assembly.folder, assembly.train
    device = assembly.trainer.engine.device
    run = load_run(folder, device)
    models: list[Any] = [model for model in run.models if getattr(model, "stand_in", None) is not None]
    if not models or "polished" in run.about:  # a run stopped between this and its end comes here twice
        return
    spaced = np.linspace(0, len(train) - 1, min(BATCHES * SIZE, len(train))).round().astype(np.int64)
    drawn = np.random.default_rng(0).permutation(spaced)  # neighbours show the same image
    for model in models:
        with torch.no_grad():
            batches = [train.batch(ids).to(device) for ids in np.array_split(drawn, -(-len(drawn) // SIZE))]
            lessons = [
                (model.encode_images(b.images, b.image_mask), model.encode_texts(b.texts, b.text_mask)) for b in batches
            ]
        polish(model, lessons)
    scorers = assembly.trainer.method.scorers
    named: dict[str, nn.Module] = dict(zip(scorers, run.models, strict=True))  # type: ignore[arg-type]
    about = {key: value for key, value in run.about.items() if key not in ("format", "scorers")}
    save_model(folder / "model.safetensors", named, scorers, {**about, "polished": "yes"})
