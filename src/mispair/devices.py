"""Which device computes: the one that was named, or the best of this machine."""

from __future__ import annotations

from mispair.errors import InputError


def best_device() -> str:
    """What "auto" means here: cuda, else mps, else cpu."""
    import torch

    return "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"


def find_device(name: str) -> str:
    """The device of that name, or for "auto" the best one. Raises InputError where this machine has none such."""
    import torch

    if name == "auto":
        return best_device()
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise InputError(f"there is no device '{name}' here; try 'auto' or 'cpu'") from None
    return name
