"""The only module that seeds. Named, independent generators derived from (seed, name)."""

from __future__ import annotations

import hashlib

import numpy as np
import torch


class Streams:
    """`Streams(0).torch("method/epoch=3")`: the same name always gives the same fresh generator.

    Nothing has to be saved to resume: whoever needs a draw names it by what it is for and when.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def torch(self, name: str) -> torch.Generator:
        return torch.Generator().manual_seed(self._derive(name) >> 1)  # torch wants 63 bits

    def numpy(self, name: str) -> np.random.Generator:
        return np.random.default_rng(self._derive(name))

    def _derive(self, name: str) -> int:
        return int.from_bytes(hashlib.sha256(f"{self.seed}/{name}".encode()).digest()[:8], "little")


def seed_globally(seed: int) -> None:
    """Torch's global generator, which initialisation and dropout draw from; set once per run."""
    torch.manual_seed(seed)


def global_state() -> dict[str, torch.Tensor]:
    """What the global generators will draw next."""
    state = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state()
    return state


def restore_global_state(state: dict[str, torch.Tensor]) -> None:
    """Go on drawing where `global_state` was taken."""
    torch.set_rng_state(state["cpu"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])
