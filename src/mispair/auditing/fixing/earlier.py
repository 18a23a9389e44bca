"""Data that an earlier `mispair fix` wrote: its pairs were chosen by how they look, which a new estimate cannot see."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mispair.auditing.fixing.actions import CHOOSING
from mispair.auditing.fixing.patch import NAME, read_patch
from mispair.errors import InputError


def earlier_fix(path: str) -> dict[str, Any] | None:
    """The action that left the data at `path`, and the share it expected to be wrong; None where none changed it."""
    place = Path(path)
    folder = place if place.is_dir() else place.parent
    if not (folder / NAME).is_file():
        return None
    try:
        patch = read_patch(folder / NAME)
    except (InputError, OSError):
        return None  # whoever wants to undo it will be told
    if patch.action not in CHOOSING or not (place.is_dir() or place.name in patch.files):
        return None
    if patch.kept == patch.pairs and not patch.changed:
        return None  # all pairs are there as they were: nothing was chosen
    return {"action": patch.action, "wrong": patch.wrong}
