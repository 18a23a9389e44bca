"""Where results that cost time and can always be made again are kept between commands."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """$MISPAIR_CACHE, or `mispair` in the folder where this system keeps caches. It need not exist yet."""
    if chosen := os.environ.get("MISPAIR_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mispair"
