"""Where a network lives: what a step looks up by pair id must lie there too, or every step would wait for a copy."""

from __future__ import annotations

import torch
from torch import nn


def device_of(network: nn.Module) -> torch.device:
    return next(network.parameters()).device
