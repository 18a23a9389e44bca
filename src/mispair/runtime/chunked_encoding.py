"""Encoding a batch that does not fit: in chunks, twice (GradCache, Gao et al., 2021).

A contrastive loss needs the encodings of the whole batch, but not the graphs of their encoders at once. The first pass
keeps the encodings alone; the loss gives them gradients; the second encodes chunk by chunk again, with the same draws,
and hands each its gradient. The sum is the gradient of the large batch.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

from mispair.runtime.randomness import global_state, restore_global_state
from mispair.types import Encoded

EncodeSide = Callable[[Tensor, Tensor], Encoded]


class ChunkedEncoding:
    """One side of a batch, encoded `chunk` items at a time; items must be encoded independently of each other."""

    def __init__(self, model: object, encoder: EncodeSide, values: Tensor, mask: Tensor, chunk: int) -> None:
        self.model, self._encoder = model, encoder
        self._parts = list(zip(torch.split(values, chunk), torch.split(mask, chunk), strict=True))
        self._draws: list[dict[str, Tensor]] = []
        encoded = []
        learning = torch.is_grad_enabled()
        with torch.no_grad():
            for part in self._parts:
                self._draws.append(global_state())
                encoded.append(encoder(*part))
        # Autocast keeps the half-precision weights it made without a graph: the second pass must make its own.
        torch.clear_autocast_cache()
        self._values = torch.cat([e.values for e in encoded]).requires_grad_(learning)
        self.encoded = Encoded(self._values, torch.cat([e.mask for e in encoded]))

    def backward(self, module: nn.Module, arithmetic: Callable[[], AbstractContextManager[None]]) -> bool:
        """Hand the gradient of the encodings on to the encoder, if they have one and `module` is its model."""
        gradient = self._values.grad
        if self.model is not module or gradient is None:
            return False
        before = global_state()
        chunk = len(self._parts[0][0])
        for part, draws, wanted in zip(self._parts, self._draws, torch.split(gradient, chunk), strict=True):
            restore_global_state(draws)
            with torch.enable_grad(), arithmetic():
                again = self._encoder(*part).values
            torch.autograd.backward(again, wanted)
        restore_global_state(before)
        return True
