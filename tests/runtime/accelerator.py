"""An accelerator that is not there: torch's `meta` device, and a watch that lets no operation mix devices.

A meta tensor has no values, so reading one raises: `item`, `bool`, `nonzero`, `cpu`. Whatever runs on it never makes
the host wait. What `meta` lets pass and a real device refuses: an operation on tensors of two devices (`NoMixing`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from mispair.device_to_host import to_host

META = torch.device("meta")
COPIES = {torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default}


class NoMixing(TorchDispatchMode):
    """Refuses an operation on tensors of the host and of the device; a number (no axes) may come from anywhere."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor) and leaf.ndim]
        if func not in COPIES and len({tensor.device for tensor in given}) > 1:
            raise AssertionError(f"{func} mixes {sorted({str(tensor.device) for tensor in given})}")
        return func(*args, **(kwargs or {}))


@contextmanager
def pretended(monkeypatch: Any) -> Iterator[None]:
    """`meta` has no autocast: there is nothing to cast. Only what is read by `to_host` has values, drawn at random."""
    autocast, enabled, drawn = torch.autocast, torch.is_autocast_enabled, torch.Generator().manual_seed(0)

    def cast(device: str, *args: Any, **kwargs: Any) -> Any:
        return nullcontext() if device == "meta" else autocast(device, *args, **kwargs)

    def read(values: Tensor) -> Tensor:
        made = torch.rand(values.shape, generator=drawn)
        return made < 0.5 if values.dtype == torch.bool else made.to(values.dtype)

    monkeypatch.setattr(torch, "autocast", cast)
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda device: device != "meta" and enabled(device))
    monkeypatch.setattr(torch, "get_autocast_dtype", lambda device: torch.float32)
    for name, module in list(sys.modules.items()):
        if name.startswith("mispair.") and getattr(module, "to_host", None) is to_host:
            monkeypatch.setattr(module, "to_host", read)
    with NoMixing():
        yield
