"""Where are the configurations and experiments that come with mispair? In a checkout, or in the installed copy."""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import Literal

from mispair.errors import InputError

_PACKAGE = Path(__file__).parent


def homes(kind: Literal["configs", "experiments"]) -> tuple[Path, ...]:
    """Folders to look in, the first wins: the present one, the checkout, what came with the package."""
    return Path(kind), _PACKAGE.parents[1] / kind, _PACKAGE / "shipped" / kind


def find_config(name: Path) -> Path:
    """`name` as a file, else as a name such as f30k/l2rm-sgr below `configs/`.

    Raises:
        InputError: neither is there.
    """
    if os.path.exists(name) or name.is_absolute() or ".." in name.parts:
        return name
    known: dict[str, Path] = {}
    for home in reversed(homes("configs")):
        known |= {path.relative_to(home).with_suffix("").as_posix(): path for path in home.glob("*/*.yaml")}
    asked = name.with_suffix("").as_posix() if name.suffix in (".yaml", ".yml") else name.as_posix()
    if asked in known:
        return known[asked]
    near = difflib.get_close_matches(asked, known, n=1, cutoff=0.6)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise InputError(f"there is no configuration file {name}, and none of that name comes with mispair{hint}")
