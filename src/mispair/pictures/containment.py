"""May this path be read? The one place that decides whether a file lies inside a folder, after resolving links."""

from __future__ import annotations

import os
from pathlib import Path


def contained(folder: str | os.PathLike[str], name: str) -> Path | None:
    """`folder`/`name` with every link resolved, or None where that is not inside `folder` (itself resolved).

    None too for what is no path: "", a NUL byte, links in a circle. The file need not exist. An absolute `name` is
    allowed where it leads into the folder.
    """
    if not name or "\0" in name:
        return None
    try:
        home = os.path.realpath(folder)
        path = os.path.realpath(os.path.join(home, name))
        if os.path.islink(path):  # what resolving leaves of links in a circle
            return None
        inside = path != home and os.path.commonpath([home, path]) == home
    except (OSError, ValueError):  # a name too long for the system; different drives
        return None
    return Path(path) if inside else None
