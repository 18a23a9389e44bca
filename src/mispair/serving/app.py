"""The server: one FastAPI application over an index, an audit, or both."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from mispair.errors import InputError
from mispair.reviewing.session import ReviewSession
from mispair.searching.index import Index
from mispair.searching.query import QueryEncoder, Why
from mispair.serving.limits import Guard, Refusal, refuse_open_host, what_is_malformed
from mispair.serving.metrics import Metrics
from mispair.version import __version__

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI, Request, Response

ASSETS = Path(__file__).parent / "assets"


class PictureFolder(Protocol):
    """Where pictures come from: the data's own folders, a tar, or a drawn world."""

    def read(self, image_id: str) -> bytes | None:
        """The bytes of a picture; None where there is none or it may not be read."""
        ...


@dataclass(frozen=True)
class Site:
    """What is served."""

    name: str
    index: Index | None = None
    encoder: QueryEncoder | None = None
    review: ReviewSession | None = None
    pictures: PictureFolder | None = None
    explain: Callable[[int, str, bool], Why] | None = None  # pair, text, regions too -> what carried the score
    audit_pairs: NDArray[np.int64] | None = None  # (N,) the audit's number of each pair of the index; -1: not judged
    metrics: Metrics = field(default_factory=Metrics)


def make_app(site: Site, host: str = "127.0.0.1", token: str | None = None) -> FastAPI:
    """The application; every route has its limits, every answer its headers.

    Raises:
        InputError: fastapi is not installed, or an open host without a token.
    """
    refuse_open_host(host, token)
    require_fastapi()
    from fastapi import FastAPI
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse

    from mispair.serving import pages, review_routes, search_routes

    app = FastAPI(
        title="mispair", version=__version__, docs_url=None, redoc_url=None, openapi_url="/api/openapi.json",
        description="Search pairs by words, pictures or each other, and decide which ones match.",
        responses={"4XX": {"model": Refusal, "description": "one sentence that says what to change"}},
    )  # fmt: skip

    @app.exception_handler(InputError)
    async def refuse(request: Request, error: InputError) -> Response:
        return JSONResponse({"detail": str(error)}, 400)

    @app.exception_handler(RequestValidationError)
    async def refuse_malformed(request: Request, error: RequestValidationError) -> Response:
        return JSONResponse({"detail": what_is_malformed(error.errors())}, 422)

    @app.middleware("http")
    async def measure(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
        began = time.monotonic()
        response = await answer(request)
        route = request.scope.get("route")
        site.metrics.observe(getattr(route, "path", "other"), response.status_code, time.monotonic() - began)
        return response

    app.include_router(pages.router(site, token))
    app.include_router(search_routes.router(site))
    if site.review is not None:
        app.include_router(review_routes.router(site, site.review))
    app.add_middleware(Guard, host=host, token=token)
    return app


def require_fastapi() -> None:
    """Refuse with a sentence how to get it where fastapi or uvicorn is not installed."""
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise InputError(
            "the server needs fastapi and uvicorn; install them with: pip install fastapi uvicorn"
        ) from None


def run_server(site: Site, host: str, port: int, token: str | None, ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM or Ctrl-C; what is under way is finished first.

    Args:
        ready: called with the address once the port is bound.

    Raises:
        InputError: the port is in use, or may not be bound.
    """
    app = make_app(site, host, token)
    import uvicorn

    try:
        bound = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        raise InputError(f"port {port} of {host} cannot be used ({reason}); choose another with --port") from None
    port = bound.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    ready(f"http://{shown}:{port}/")
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=10, server_header=False)
    _serve(uvicorn.Server(config), bound)


def _serve(server: uvicorn.Server, bound: socket.socket) -> None:
    """Until a signal; beside an event loop that runs already, as a notebook's does, in a thread of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        server.run(sockets=[bound])
        return
    ended = threading.Event()

    def run() -> None:
        try:
            server.run(sockets=[bound])
        finally:
            ended.set()

    try:
        threading.Thread(target=run, name="mispair-serve").start()
        # In turns: an interruption that comes just before the wait does not end it, and would wait with it for ever.
        while not ended.wait(timeout=0.2):
            pass
    except KeyboardInterrupt:
        server.should_exit = True
        ended.wait()
