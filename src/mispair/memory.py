"""What fits into memory, asked before it is allocated."""

from __future__ import annotations

import os
from pathlib import Path

from mispair.errors import InputError


def available_bytes() -> int | None:
    """Bytes this process may still allocate: free memory, or less where a container has a limit. None: unknown."""
    free = []
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                free.append(int(line.split()[1]) * 1024)
    except (OSError, ValueError, IndexError):
        try:
            free.append(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        except (OSError, ValueError, AttributeError):
            return None
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
        if limit != "max":
            used = int(Path("/sys/fs/cgroup/memory.current").read_text(encoding="ascii"))
            free.append(max(0, int(limit) - used))
    except (OSError, ValueError):
        pass
    return min(free, default=None)


def refuse_beyond_memory(needed: int, what: str, remedy: str) -> None:
    """Raise where `needed` bytes for `what` cannot be had; `remedy` says what to change."""
    there = available_bytes()
    if there is not None and needed > there:
        raise InputError(f"{what} needs {_size(needed)} of memory and {_size(there)} are free; {remedy}")


def _size(count: int) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.1f} MB"
