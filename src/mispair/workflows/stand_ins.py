"""After the last epoch: the stand-ins of the best models catch up with them, so that shortlists can be trusted."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from mispair.models import fit_stand_in
from mispair.runtime.checkpoint import load_model, save_model
from mispair.workflows.assemble import Training
from mispair.workflows.best_models import best_models

BATCHES, SIZE = 10, 128


def refit_stand_ins(training: Training) -> None:
    """Fit the stand-in of every saved model to its logits on training pairs; nothing where no model has one."""
    file, data = training.folder.model_file, training.data
    device = training.trainer.engine.device
    saved: list[Any] = best_models(training)
    models = [model for model in saved if getattr(model, "stand_in", None) is not None]
    about = load_model(file)[1]
    if not models or "polished" in about:  # a run stopped between this and its end comes here twice
        return
    spaced = np.linspace(0, len(data) - 1, min(BATCHES * SIZE, len(data))).round().astype(np.int64)
    drawn = np.random.default_rng(0).permutation(spaced)  # neighbours show the same image
    for model in models:
        with torch.no_grad():
            batches = [data.batch(ids).to(device) for ids in np.array_split(drawn, -(-len(drawn) // SIZE))]
            lessons = [
                (model.encode_images(b.images, b.image_mask), model.encode_texts(b.texts, b.text_mask)) for b in batches
            ]
        fit_stand_in(model, lessons)
    named: dict[str, nn.Module] = dict(zip(training.trainer.method.networks, saved, strict=True))
    kept = {key: value for key, value in about.items() if key not in ("format", "scorers")}
    save_model(file, named, {**kept, "polished": "yes"})
