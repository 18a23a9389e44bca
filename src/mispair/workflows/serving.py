"""Serve a folder, or the review of an audit, until somebody ends it; the command line and Python start here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from mispair.progress import Tell, silent
from mispair.serving.app import require_fastapi, run_server
from mispair.serving.limits import refuse_open_host
from mispair.workflows.site import open_review, open_site


def serve_folder(
    folder: Path,
    audit: Path | None,
    pictures: Path | None,
    *,
    host: str,
    port: int,
    token: str | None,
    say: Callable[[str], None],
    tell: Tell = silent,
) -> None:
    """The search page of an index, a run or an audit; `say` hears the address once the server listens."""
    refuse_open_host(host, token)
    require_fastapi()
    site = open_site(folder, audit, pictures, tell)
    asked = f"?token={token}" if token else ""
    run_server(site, host, port, token, lambda address: say(f"Search: {address}{asked}  (Ctrl-C ends it)"))


def serve_review(
    audit: Path,
    reviewer: str | None,
    decisions: Path | None,
    pictures: Path | None,
    *,
    host: str,
    port: int,
    token: str | None,
    say: Callable[[str], None],
    warn: Callable[[str], None],
) -> None:
    """The review of an audit; `say` hears the address, `warn` what is odd about the decisions that are there."""
    refuse_open_host(host, token)
    require_fastapi()
    site = open_review(audit, pictures, decisions)
    assert site.review is not None
    if site.review.note is not None:
        warn(f"{site.review.log.path}: {site.review.note}")

    def ready(address: str) -> None:
        asked = [f"token={token}"] if token else []
        asked += [f"reviewer={quote(reviewer)}"] if reviewer else []
        say(f"Review: {address}review{'?' + '&'.join(asked) if asked else ''}  (Ctrl-C ends it)")

    run_server(site, host, port, token, ready)
