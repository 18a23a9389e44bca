"""Search over HTTP, also as clients of clip-retrieval ask for it."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import quote

import numpy as np
from fastapi import APIRouter, HTTPException, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from mispair.errors import InputError
from mispair.searching.index import Index
from mispair.searching.query import (
    MOST_ANSWERS,
    MOST_CHARACTERS,
    Hit,
    QueryEncoder,
    SearchResult,
    search_pair,
    search_picture,
    search_text,
    search_vector,
)
from mispair.serving.limits import MOST_BASE64

if TYPE_CHECKING:
    from mispair.serving.app import Site


class SearchRequest(BaseModel):
    """Words, a picture (base64 of the file) or the number of a pair; and what to look for."""

    model_config = ConfigDict(extra="forbid")

    text: str | None = Field(default=None, max_length=MOST_CHARACTERS)
    picture: str | None = Field(default=None, max_length=MOST_BASE64)
    pair: int | None = Field(default=None, ge=0, lt=2**62)
    by: Literal["images", "texts"] = "images"  # which side of the pair asks
    side: Literal["images", "texts"] = "images"  # what to find
    k: int = Field(default=24, ge=1, le=MOST_ANSWERS)
    split: str | None = Field(default=None, max_length=100)
    suspicious: bool | None = None  # only pairs an audit calls mismatched, or only the others


class Pair(BaseModel):
    """What is shown of a pair."""

    pair: int
    caption: str
    image: str
    split: str
    p_mismatch: float | None = None
    reviewable: bool = False  # whether "looks wrong" can send it to the review


class ScoredPair(Pair):
    """One answer."""

    score: float


class SampleAnswer(BaseModel):
    """Some pairs at random, of how many."""

    answers: list[Pair]
    pairs: int


class SearchAnswer(BaseModel):
    """Answers, best first, and what to know about them."""

    answers: list[ScoredPair]
    notes: list[str]


class Carried(BaseModel):
    """A piece of a text, and what the score loses without it; null where the model does not read it."""

    word: str
    carried: float | None


class WhyAnswer(BaseModel):
    """What carried a score: words, and regions as rows of a grid over the picture, the top one first."""

    score: float
    words: list[Carried]
    regions: list[list[float]]
    how: str


class KnnRequest(BaseModel):
    """As clip-retrieval's clients send it."""

    model_config = ConfigDict(extra="ignore")

    text: str | None = Field(default=None, max_length=MOST_CHARACTERS)
    image: str | None = Field(default=None, max_length=MOST_BASE64)
    image_url: str | None = Field(default=None, max_length=4096)
    embedding_input: list[float] | None = Field(default=None, max_length=16_384)
    modality: Literal["image", "text"] = "image"
    num_images: int = Field(default=40, ge=1, lt=2**31)  # beyond what one answer holds they get what it holds


def router(site: Site) -> APIRouter:
    """Routes of the index; without one they say so."""
    routes = APIRouter()

    def index() -> Index:
        if site.index is None:
            raise HTTPException(404, "nothing is indexed here: serve an index (mispair index RUN -o INDEX)")
        return site.index

    def encoder() -> QueryEncoder:
        if site.encoder is None:
            raise InputError("this index came without a model that reads words or pictures: ask by pair")
        return site.encoder

    @routes.post("/api/search")
    def search(request: SearchRequest) -> SearchAnswer:
        """The nearest pictures or captions."""
        asked = [name for name in ("text", "picture", "pair") if getattr(request, name) is not None]
        if len(asked) != 1:
            raise InputError(f"ask by one of text, picture and pair; got {' and '.join(asked) or 'none'}")
        here = index()
        only = here.metadata.where(request.split, request.suspicious)
        result: SearchResult
        if request.text is not None:
            result = search_text(here, encoder(), request.text, request.k, request.side, only)
        elif request.picture is not None:
            result = search_picture(here, encoder(), _decoded(request.picture), request.k, request.side, only)
        else:
            assert request.pair is not None
            result = search_pair(here, request.pair, request.k, request.by, request.side, only, site.encoder)
        return SearchAnswer(answers=[_answer(site, hit) for hit in result.hits], notes=list(result.notes))

    @routes.get("/api/sample")
    def sample(
        k: Annotated[int, Query(ge=1, le=MOST_ANSWERS)] = 24,
        split: Annotated[str, Query(max_length=100)] = "",
        suspicious: Literal["", "yes", "no"] = "",
    ) -> SampleAnswer:
        """Some pairs at random, to begin with."""
        here = index()
        only = here.metadata.where(split or None, None if suspicious == "" else suspicious == "yes")
        among = len(here) if only is None else int(only.sum())
        drawn = np.sort(np.random.default_rng().choice(among, min(k, among), replace=False))
        rows = drawn if only is None else np.flatnonzero(only)[drawn]
        return SampleAnswer(answers=[Pair(**_pair(site, row)) for row in here.rows(rows)], pairs=among)

    @routes.get("/api/pairs/{pair}")
    def pair(pair: Annotated[int, Path(ge=0, lt=2**62)]) -> dict[str, Any]:
        """One pair with what is known about it, and its neighbours both ways."""
        here = index()
        if pair >= len(here):
            raise HTTPException(404, f"there is no pair {pair}; pairs go from 0 to {len(here) - 1}")
        (row,) = here.rows([pair])
        near = {
            f"{by}_{side}": [
                _answer(site, hit).model_dump() for hit in search_pair(here, pair, 8, by, side, None, site.encoder).hits
            ]
            for by in ("images", "texts")
            for side in ("images", "texts")
        }
        return {"pair": pair, "caption": row["caption"], "image": row["image_path"], "about": row, "neighbours": near}

    @routes.get("/api/why")
    def why(
        pair: Annotated[int, Query(ge=0, lt=2**62)],
        text: Annotated[str, Query(max_length=MOST_CHARACTERS)],
        regions: bool = True,
    ) -> WhyAnswer:
        """Which words of a text, and which regions of the picture of a pair, carried their score."""
        if pair >= len(index()):
            raise HTTPException(404, f"there is no pair {pair}")
        if site.explain is None:
            raise InputError("this index came without a model that can say why")
        explained = site.explain(pair, text, regions)
        words = [
            Carried(word=word, carried=None if value is None else round(value, 5)) for word, value in explained.words
        ]
        grid = [[round(value, 5) for value in row] for row in explained.regions]
        return WhyAnswer(score=round(explained.score, 5), words=words, regions=grid, how=explained.how)

    @routes.post("/knn-service")
    def knn_service(request: KnnRequest, http: Request) -> list[dict[str, Any]]:
        """The interface of clip-retrieval: id, caption, similarity and url of the nearest pairs, at most 200."""
        side: Literal["images", "texts"] = "images" if request.modality == "image" else "texts"
        count = min(request.num_images, MOST_ANSWERS)
        if request.text:
            hits = search_text(index(), encoder(), request.text, count, side).hits
        elif request.image is not None:
            hits = search_picture(index(), encoder(), _decoded(request.image), count, side).hits
        elif request.image_url is not None:
            raise InputError("addresses are not fetched: send the picture itself as image, in base64")
        elif request.embedding_input is not None:
            hits = search_vector(index(), np.asarray(request.embedding_input, np.float64), count, side).hits
        else:
            raise InputError("ask by one of text, image and embedding_input")
        return [
            {"id": h.pair, "caption": h.caption, "similarity": h.score, "image_path": h.image_path,
             "url": _address(h.image_path, str(http.base_url))}
            for h in hits
        ]  # fmt: skip

    return routes


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text.partition(",")[2] if text.startswith("data:") else text, validate=True)
    except (binascii.Error, ValueError):
        raise InputError("the picture is not base64") from None


def _address(image: str, server: str) -> str:
    """Where a client can fetch a picture: its own address where it has one, else this server's copy."""
    return image if image.startswith(("http://", "https://")) else f"{server}api/pictures?id={quote(image)}&side=1280"


def _answer(site: Site, hit: Hit) -> ScoredPair:
    row = {"pair": hit.pair, "caption": hit.caption, "image_path": hit.image_path, "split": hit.split, **hit.about}
    return ScoredPair(score=round(hit.score, 6), **_pair(site, row))


def _pair(site: Site, row: dict[str, Any]) -> dict[str, Any]:
    known = site.audit_pairs is None or site.audit_pairs[row["pair"]] >= 0
    return {
        "pair": row["pair"], "caption": row["caption"], "image": row["image_path"], "split": row["split"],
        "p_mismatch": row.get("p_mismatch"), "reviewable": site.review is not None and known,
    }  # fmt: skip
