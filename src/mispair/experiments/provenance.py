"""Where does a figure come from? The code, the machine and the libraries it was measured with."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from functools import cache
from pathlib import Path

from mispair.version import __version__


@cache
def code_hash() -> str:
    """Version and a hash of every source file; with the commit where this is a checkout."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        digest.update(file.relative_to(package).as_posix().encode() + b"\0" + file.read_bytes())
    commit = _commit(package)
    return f"mispair {__version__}, source {digest.hexdigest()[:12]}" + (f", commit {commit}" if commit else "")


def hardware() -> str:
    """Processor, cores and accelerator."""
    import torch

    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        name = models[0].partition(":")[2].strip() if models else name
    cores = f"{os.cpu_count()} cores"
    gpu = f", {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
    return f"{name}, {cores}{gpu}"


def versions() -> str:
    """The versions a result depends on, in one line."""
    import numpy
    import torch

    return f"Python {platform.python_version()}, torch {torch.__version__}, numpy {numpy.__version__}"


def _commit(folder: Path) -> str | None:
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return described.stdout.strip() or None
