"""Evaluation mode for the length of a block: no dropout, running statistics read and not moved, no graph."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def evaluation_mode(*models: object) -> Iterator[None]:
    """Inside, the models are in evaluation mode and nothing has a gradient.

    Afterwards, also when the block raised, every submodule has the mode it had. What is not an `nn.Module` (a model
    needs only keep `RetrievalModel`) has no mode and is left alone.
    """
    try:
        with _mode(False, models), torch.no_grad():
            yield
    finally:
        # Mixed precision keeps low-precision copies of weights; older torch would go on with these, without gradient.
        torch.clear_autocast_cache()


@contextmanager
def training_mode(*models: nn.Module) -> Iterator[None]:
    """Inside, the models are in training mode; afterwards every submodule has the mode it had."""
    with _mode(True, models):
        yield


@contextmanager
def _mode(training: bool, models: tuple[object, ...]) -> Iterator[None]:
    modules = [module for model in models if isinstance(model, nn.Module) for module in model.modules()]
    before = [module.training for module in modules]
    for model in models:
        if isinstance(model, nn.Module):
            model.train(training)
    try:
        yield
    finally:
        for module, was in zip(modules, before, strict=True):
            module.training = was
