"""Review over HTTP: what to look at, what was decided, taking it back."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from mispair.errors import InputError
from mispair.reviewing.decisions import Answer
from mispair.reviewing.session import ReviewSession

if TYPE_CHECKING:
    from mispair.serving.app import Site

Name = Annotated[str, Query(min_length=1, max_length=100)]


class DecisionRequest(BaseModel):
    """An answer to what a reviewer was shown at `place`."""

    model_config = ConfigDict(extra="forbid")

    reviewer: str = Field(min_length=1, max_length=100)
    place: int = Field(ge=0, lt=2**62)
    pair: int | None = Field(default=None, ge=0, lt=2**62)  # what was on the screen
    answer: Answer
    caption: str | None = Field(default=None, max_length=10_000)
    seconds: float | None = Field(default=None, ge=0, le=1e6, allow_inf_nan=False)


class UndoRequest(BaseModel):
    """Whose last answer is taken back."""

    model_config = ConfigDict(extra="forbid")

    reviewer: str = Field(min_length=1, max_length=100)


class FlagRequest(BaseModel):
    """A pair that looked wrong during a search."""

    model_config = ConfigDict(extra="forbid")

    pair: int = Field(ge=0, lt=2**62)


def router(site: Site, review: ReviewSession) -> APIRouter:
    """Routes of one review."""
    routes = APIRouter()

    @routes.get("/api/review/next")
    def following(reviewer: Name, ahead: Annotated[int, Query(ge=0, le=10)] = 0) -> dict[str, Any]:
        """What to look at next, and what comes after it so that it can be loaded ahead."""
        shown = [review.shown(reviewer, k) for k in range(ahead + 1)]
        return {"items": [asdict(item) for item in shown if item is not None], "progress": review.progress(reviewer)}

    @routes.post("/api/decisions")
    def decide(request: DecisionRequest) -> dict[str, Any]:
        """Take one answer; it is on disk before this is answered."""
        decision = review.answer(
            request.reviewer, request.place, request.answer, request.caption, request.seconds, request.pair
        )
        return {"number": decision.number, "progress": review.progress(request.reviewer)}

    @routes.post("/api/decisions/undo")
    def undo(request: UndoRequest) -> dict[str, Any]:
        """Take the reviewer's last answer back."""
        taken = review.undo(request.reviewer)
        return {"undone": None if taken is None else taken.pair, "progress": review.progress(request.reviewer)}

    @routes.get("/api/decisions")
    def decisions(reviewer: Name) -> list[dict[str, Any]]:
        """The standing answers of one reviewer, without what the model thinks."""
        shown = {"number", "pair", "answer", "caption", "time", "seconds"}
        return [d.model_dump(include=shown) for d in review.log.of(reviewer.strip())]

    @routes.post("/api/review/flag")
    def flag(request: FlagRequest) -> dict[str, bool]:
        """Put a pair of the index that looked wrong at the head of the queue."""
        pair = request.pair
        if site.audit_pairs is not None and pair < len(site.audit_pairs):
            pair = int(site.audit_pairs[pair])
            if pair < 0:
                raise InputError("the audit has not judged this pair, so it cannot be reviewed here; audit its split")
        review.flag(pair)
        return {"flagged": True}

    return routes
