"""A path as one word of a command that somebody pastes into a shell."""

from __future__ import annotations

import os
import shlex


def in_shell(path: str | os.PathLike[str]) -> str:
    """`path` in quotes where a shell would take it for several words, or for something else."""
    return shlex.quote(os.fspath(path))
