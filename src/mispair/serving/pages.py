"""The pages and their assets, pictures, health, metrics."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, HTTPException, Query
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from pydantic import BaseModel

from mispair.pictures.reencode import reencode
from mispair.version import __version__

if TYPE_CHECKING:
    from mispair.serving.app import Site

_KINDS = {"css": "text/css", "js": "text/javascript"}
_SIDES = (160, 320, 640, 1280)


class Health(BaseModel):
    """What is served."""

    status: str
    version: str
    pairs: int  # of the index; 0 without one
    review: bool
    splits: list[str]
    judged: bool  # whether the index says what an audit thought of its pairs


def router(site: Site, token: str | None) -> APIRouter:
    """Routes of the pages and what they load: assets and pictures; and of the health and the metrics of the server."""
    from mispair.serving.app import ASSETS

    routes = APIRouter()

    def page(name: str) -> HTMLResponse:
        response = HTMLResponse((ASSETS / name).read_text(encoding="utf-8"))
        if token is not None:  # whoever may see the page may ask for its data
            response.set_cookie("mispair_token", token, httponly=True, samesite="strict")
        return response

    @routes.get("/", include_in_schema=False)
    def home() -> HTMLResponse:
        return page("search.html" if site.index is not None else "review.html")

    if site.review is not None:

        @routes.get("/review", include_in_schema=False)
        def review() -> HTMLResponse:
            return page("review.html")

    @routes.get("/assets/{name}", include_in_schema=False)
    def asset(name: str) -> Response:
        path = ASSETS / name
        kind = _KINDS.get(path.suffix.lstrip("."))
        if kind is None or "/" in name or "\\" in name or not path.is_file():
            raise HTTPException(404, "there is no such asset")
        return Response(path.read_bytes(), media_type=kind, headers={"cache-control": "max-age=300"})

    @lru_cache(maxsize=2048)
    def shown(image_id: str, side: int) -> bytes | None:
        data = None if site.pictures is None else site.pictures.read(image_id)
        return None if data is None else reencode(data, side)

    @routes.get("/api/pictures")
    def picture(
        id: Annotated[str, Query(max_length=1000)],
        side: Annotated[int, Query(ge=16, le=1280)] = 320,
    ) -> Response:
        """A picture of the data, decoded and encoded again as WebP."""
        size = next(s for s in _SIDES if s >= side)
        data = shown(id, size)
        if data is None:
            raise HTTPException(404, "there is no such picture, or it cannot be decoded")
        return Response(data, media_type="image/webp", headers={"cache-control": "private, max-age=3600"})

    splits = [] if site.index is None else site.index.metadata.distinct("split")
    judged = site.index is not None and "p_mismatch" in site.index.metadata.schema.names

    @routes.get("/api/health")
    def health() -> Health:
        """Whether the server is up, and what it serves."""
        pairs = len(site.index) if site.index is not None else 0
        return Health(
            status="ok", version=__version__, pairs=pairs, review=site.review is not None, splits=splits, judged=judged
        )

    @routes.get("/metrics", response_class=PlainTextResponse)
    def metrics() -> PlainTextResponse:
        """Counters for Prometheus."""
        return PlainTextResponse(site.metrics.text(), media_type="text/plain; version=0.0.4")

    return routes
