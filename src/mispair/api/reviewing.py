"""Let people decide, take their decisions in and out, and serve the pages, from Python."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    PathLike = str | os.PathLike[str]


def serve(
    folder: PathLike,
    *,
    audit: PathLike | None = None,
    pictures: PathLike | None = None,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    say: Callable[[str], None] | None = None,
    tell: Callable[[str, int, int], None] | None = None,
) -> None:
    """Serve the search page and the REST interface until it is interrupted (Ctrl-C; in a notebook, the stop button).

    Args:
        folder: an index, a run or an audit.
        audit: with an index or a run, the audit whose pairs can be reviewed there.
        pictures: folder of the pictures, where they do not lie beside the data.
        host: where to listen; anything but this machine itself needs a `token`.
        port: 0 takes any free one.
        token: who may ask: at least 16 characters.
        say: called with the address once it listens; by default it goes to standard error.
        tell: called with what is being done, how much of it is done, and how much there is.

    Returns:
        Nothing, once it is interrupted.

    Raises:
        InputError: the folder is none of these, the port is in use, or fastapi is not installed.

    Example:
        >>> mp.serve("index", port=8080)
    """
    from mispair.progress import silent
    from mispair.workflows.serving import serve_folder

    with suppress(KeyboardInterrupt):
        serve_folder(
            Path(folder), _path(audit), _path(pictures), host=host, port=port, token=token, say=say or _say,
            tell=tell or silent,
        )  # fmt: skip


def review(
    audit: PathLike,
    *,
    reviewer: str | None = None,
    decisions: PathLike | None = None,
    pictures: PathLike | None = None,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    say: Callable[[str], None] | None = None,
) -> None:
    """Serve the review of an audit until it is interrupted: a person decides, pair by pair.

    Args:
        audit: an audit folder.
        reviewer: who decides; otherwise the page asks.
        decisions: the decisions file; AUDIT/decisions.jsonl by default.
        pictures: folder of the pictures, where they do not lie beside the data.
        host: where to listen; anything but this machine itself needs a `token`.
        port: 0 takes any free one.
        token: who may ask: at least 16 characters.
        say: called with the address once it listens; by default it goes to standard error.

    Returns:
        Nothing, once it is interrupted; `mispair.fix(..., decisions=...)` and `mispair.train` take what was decided.

    Raises:
        InputError: no audit there, the port is in use, or fastapi is not installed.

    Example:
        >>> mp.review("audit", reviewer="ann")
    """
    from mispair.workflows.serving import serve_review

    with suppress(KeyboardInterrupt):
        serve_review(
            Path(audit), reviewer, _path(decisions), _path(pictures), host=host, port=port, token=token,
            say=say or _say, warn=say or _say,
        )  # fmt: skip


def review_status(audit: PathLike, *, decisions: PathLike | None = None) -> str:
    """What was decided so far, in a few lines: answers, the rate they imply, reviewers and how far they agree.

    Args:
        audit: an audit folder.
        decisions: the decisions file; AUDIT/decisions.jsonl by default.

    Returns:
        The lines.

    Raises:
        InputError: nothing was decided yet, or the decisions are about another audit.

    Example:
        >>> print(mp.review_status("audit"))
    """
    from mispair.workflows.review import review_status as status

    return status(Path(audit), _path(decisions))


def export_decisions(audit: PathLike, out: PathLike, *, decisions: PathLike | None = None) -> int:
    """Write the standing decisions of a review into one file.

    Args:
        audit: an audit folder.
        out: a .parquet, a .csv or a .json (Label Studio).
        decisions: the decisions file; AUDIT/decisions.jsonl by default.

    Returns:
        How many were written; controls, which say nothing of the data, stay out of Label Studio's JSON.

    Example:
        >>> mp.export_decisions("audit", "decisions.csv")
    """
    from mispair.workflows.review import export_decisions as write

    return write(Path(audit), Path(out), _path(decisions))


def import_decisions(audit: PathLike, file: PathLike, *, decisions: PathLike | None = None) -> int:
    """Take decisions about an audit from a file, such as Label Studio's.

    Args:
        audit: an audit folder.
        file: what `mispair.export_decisions` writes, perhaps filled in elsewhere.
        decisions: the decisions file to add to; AUDIT/decisions.jsonl by default.

    Returns:
        How many were new.

    Example:
        >>> mp.import_decisions("audit", "decisions.csv")
    """
    from mispair.workflows.review import import_decisions as read

    return read(Path(audit), Path(file), _path(decisions))


def _path(given: PathLike | None) -> Path | None:
    return None if given is None else Path(given)


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
