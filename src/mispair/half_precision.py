"""bfloat16 on a processor, also on one that announces units for it and dies of using them."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

_PRODUCT = (
    "import torch; x = torch.ones(32, 32, dtype=torch.bfloat16); torch.nn.functional.linear(x.view(2, 16, 32), x)"
)


@functools.cache
def products_die() -> bool:
    """Whether a product of bfloat16 matrices kills the process.

    Some virtual machines announce the tile units of newer processors (AMX) and stop at their first instruction. That
    cannot be caught, so it is tried in a process of its own, once, and only where such units are announced.
    """
    try:
        announced = "amx_tile" in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
    if not announced:
        return False
    return subprocess.run([sys.executable, "-c", _PRODUCT], capture_output=True, check=False).returncode < 0


@contextmanager
def safe_products(device: str) -> Iterator[None]:
    """bfloat16 products inside go another, slower way where the quick one would kill the process."""
    if device != "cpu" or not products_die():
        yield
        return
    usual = torch.backends.mkldnn.set_flags(_enabled=False, _fp32_precision=None)[0]  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        torch.backends.mkldnn.set_flags(_enabled=usual, _fp32_precision=None)  # type: ignore[no-untyped-call]


@contextmanager
def bfloat16(device: str) -> Iterator[None]:
    """Mixed precision: what may be computed in bfloat16 is."""
    with safe_products(device), torch.autocast(device, dtype=torch.bfloat16):
        yield
