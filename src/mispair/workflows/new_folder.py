"""Where a run goes when nobody says."""

from __future__ import annotations

from pathlib import Path

from mispair.config.schema import RunConfig
from mispair.errors import InputError


def new_folder(config: RunConfig) -> Path:
    """A folder under runs/ that does not exist yet, named after data, method and model."""
    stem = f"{Path(config.data.path).stem}-{config.method.name}-{config.model.name}"
    for number in range(1, 10_000):
        folder = Path("runs") / f"{stem}-{number}"
        if not folder.exists():
            return folder
    raise InputError("runs/ holds ten thousand runs of this name; choose a folder")
