"""Scoring inside a training step that is not training: no dropout, running statistics read and not moved, no graph."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def judging(*networks: nn.Module) -> Iterator[None]:
    """Evaluation mode and no gradient inside; afterwards the networks are as they were."""
    before = [network.training for network in networks]
    for network in networks:
        network.eval()
    with torch.no_grad():
        yield
    for network, training in zip(networks, before, strict=True):
        network.train(training)
    # Mixed precision keeps low-precision copies of weights; older torch would go on with these, without gradient.
    torch.clear_autocast_cache()
