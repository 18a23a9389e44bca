"""How far the gradients that `tests.runtime.ranks` kept of two runs are apart."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file


def distances(one: Path, other: Path) -> dict[int, float]:
    """Relative to their size, by step."""
    left, right = (load_file(folder / "gradients.safetensors") for folder in (one, other))
    assert left.keys() == right.keys()
    apart = {}
    for step in {key.split(".")[0] for key in left}:
        mine = [key for key in left if key.split(".")[0] == step]
        size = torch.stack([left[key].norm() for key in mine]).norm()
        assert size > 1e-3, step
        apart[int(step)] = float(torch.stack([(left[key] - right[key]).norm() for key in mine]).norm() / size)
    return apart
