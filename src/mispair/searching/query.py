"""Asking an index: words, a picture or a pair in, the nearest pairs with score and caption out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mispair.errors import InputError
from mispair.searching.index import Index, Side

Mask = NDArray[np.bool_]
Finer = Callable[[NDArray[np.int64]], NDArray[np.float32] | None]  # scores of the model itself for some pairs
MOST_ANSWERS = 200
MOST_CHARACTERS = 2_000
_SHORTLIST = 5  # times k candidates for a model that scores pairs finer than their vectors do


@dataclass(frozen=True, slots=True)
class TextQuery:
    """A text as a vector (D,), and the words of it that the model has never seen."""

    vector: NDArray[np.float32]
    unknown: tuple[str, ...] = ()


class QueryEncoder(Protocol):
    """What a model must do to be asked: put words and pictures into the space of the index."""

    @property
    def model(self) -> str:
        """Hash of its weights, as the manifest has it."""
        ...

    def encode_text(self, text: str) -> TextQuery: ...

    def encode_picture(self, data: bytes) -> NDArray[np.float32]:
        """(D,) of an encoded picture file. Raises InputError where the model takes features, not pictures."""
        ...

    def rerank(self, text: str, rows: NDArray[np.int64]) -> NDArray[np.float32] | None:
        """Finer scores of a text with the images of some pairs; None where the vectors say all."""
        ...

    def rerank_texts(self, of: int | bytes, texts: Sequence[str]) -> NDArray[np.float32] | None:
        """Finer scores of some captions with the image of a pair or a picture file; None where the vectors say all."""
        ...


@dataclass(frozen=True, slots=True)
class Hit:
    """One answer."""

    pair: int
    score: float
    caption: str
    image_path: str
    split: str
    about: dict[str, Any]  # further columns of the index, such as p_mismatch


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Answers, best first, and what a person should know about them."""

    hits: tuple[Hit, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Why:
    """What carried the score of a text with a picture: what is lost when a part is taken away."""

    score: float
    words: tuple[tuple[str, float | None], ...]  # the text in pieces; None for what the model does not read
    regions: tuple[tuple[float, ...], ...] = ()  # rows of a grid over the picture, the top one first; empty: not known
    how: str = ""  # a sentence: how it was found, or why there are no regions


def search_text(
    index: Index,
    encoder: QueryEncoder,
    text: str,
    k: int = 10,
    side: Side = "images",
    only: Mask | None = None,
) -> SearchResult:
    """The pictures (or with side="texts" the captions) nearest to some words; of the pairs `only` where given."""
    text = text.strip()
    if not text:
        raise InputError("say what to look for: the text is empty")
    if len(text) > MOST_CHARACTERS:
        raise InputError(f"the text has {len(text):,} characters; at most {MOST_CHARACTERS:,}")
    query = encoder.encode_text(text)
    notes = tuple(f"'{word}' was never seen in training; it is ignored" for word in query.unknown)
    if not np.isfinite(query.vector).all() or not query.vector.any():
        raise InputError(f"none of the words of {text!r:.80} was seen in training; try other words")
    finer = (lambda rows: encoder.rerank(text, rows)) if side == "images" else None
    return SearchResult(_hits(index, query.vector, side, k, only, finer), notes)


def search_picture(
    index: Index,
    encoder: QueryEncoder,
    data: bytes,
    k: int = 10,
    side: Side = "images",
    only: Mask | None = None,
) -> SearchResult:
    """What is nearest to a picture: other pictures, or with side="texts" captions."""
    finer = (lambda rows: encoder.rerank_texts(data, _captions(index, rows))) if side == "texts" else None
    return SearchResult(_hits(index, encoder.encode_picture(data), side, k, only, finer))


def search_vector(
    index: Index, vector: NDArray[Any], k: int = 10, side: Side = "images", only: Mask | None = None
) -> SearchResult:
    """What is nearest to a vector (D,) of the space of the index."""
    if vector.ndim != 1:
        raise InputError(f"expected one vector of {index.manifest.width} numbers, got shape {vector.shape}")
    return SearchResult(_hits(index, vector, side, k, only))


def search_pair(
    index: Index,
    pair: int,
    k: int = 10,
    by: Side = "images",
    side: Side = "images",
    only: Mask | None = None,
    encoder: QueryEncoder | None = None,
) -> SearchResult:
    """What is nearest to the image or the text (`by`) of a pair of the index; its own image or text is left out.

    Args:
        encoder: the model, which orders what is found on the other side where it scores pairs finer than their vectors.
    """
    if not 0 <= pair < len(index):
        raise InputError(f"there is no pair {pair}; pairs go from 0 to {len(index) - 1:,}")
    finer: Finer | None = None
    if encoder is not None and (by, side) == ("images", "texts"):
        finer = lambda rows: encoder.rerank_texts(pair, _captions(index, rows))  # noqa: E731
    elif encoder is not None and (by, side) == ("texts", "images"):
        finer = lambda rows: encoder.rerank(index.rows([pair])[0]["caption"], rows)  # noqa: E731
    hits = _hits(index, np.asarray(index.vectors[by][pair], np.float32), side, k + 1, only, finer)
    if side == "images":
        image = index.image_of[pair]
        hits = tuple(hit for hit in hits if index.image_of[hit.pair] != image)
    else:
        hits = tuple(hit for hit in hits if hit.pair != pair)
    return SearchResult(hits[:k])


def _captions(index: Index, rows: NDArray[np.int64]) -> list[str]:
    return [str(row["caption"]) for row in index.rows(rows)]


def _hits(
    index: Index, vector: NDArray[np.float32], side: Side, k: int, only: Mask | None, finer: Finer | None = None
) -> tuple[Hit, ...]:
    """The nearest by their vectors; of a model that scores finer these are a shortlist, which it orders itself."""
    k = min(k, MOST_ANSWERS + 1)
    if finer is None or not index.manifest.rerank:
        answers = index.nearest(vector, side, k, only)
        return _as_hits(index, answers.rows[0], answers.scores[0])
    answers = index.nearest(vector, side, min(_SHORTLIST * k, len(index)), only)
    rows = answers.rows[0][answers.rows[0] >= 0]
    scores = finer(rows) if len(rows) else None
    if scores is None:
        return _as_hits(index, rows[:k], answers.scores[0][:k])
    order = np.argsort(-scores, kind="stable")[:k]
    return _as_hits(index, rows[order], scores[order])


def _as_hits(index: Index, rows: NDArray[np.int64], scores: NDArray[np.float32]) -> tuple[Hit, ...]:
    real = rows >= 0
    hits = []
    for row, score in zip(index.rows(rows[real]), scores[real].tolist(), strict=True):
        known = {"pair", "caption", "image_path", "split", "image"}
        about = {name: value for name, value in row.items() if name not in known and value is not None}
        hits.append(Hit(row["pair"], float(score), row["caption"], row["image_path"], row["split"], about))
    return tuple(hits)
