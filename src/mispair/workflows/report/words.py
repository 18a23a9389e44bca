"""Which words of a caption speak for the picture: what the score loses when a word is left out.

The score goes through the model's own attention, so this asks the whole model, and it is exact for every backbone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mispair.data import PairData
from mispair.data.tokenizer import tokenize
from mispair.data.vocabulary import UNK
from mispair.report.content import Word
from mispair.workflows.trained_run import TrainedRun

HOW = (
    "Words are judged by leaving each one out and scoring the rest against the picture with the same model: blue words "
    "raise the score, orange dotted ones lower it; the stronger the mark, the more."
)
_MOST_WORDS = 60  # of one caption; a longer one is judged by its beginning


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a caption; `rest` is the caption without it where it is a word."""

    text: str
    rest: str | None = None


def judge_words(
    run: TrainedRun, data: PairData, image_row: int, captions: Sequence[str], most_words: int = _MOST_WORDS
) -> list[list[Word]]:
    """Each caption in pieces, with the agreement of its words; the strongest word of all captions has 1 or -1."""
    cut = [cut_out(caption, most_words) for caption in captions]
    effects = [_effects(run, data, image_row, caption, pieces) for caption, pieces in zip(captions, cut, strict=True)]
    strongest = max((abs(effect) for row in effects for effect in row if effect is not None), default=0.0) or 1.0
    return [
        [Word(p.text) if e is None else Word(p.text, e / strongest) for p, e in zip(pieces, row, strict=True)]
        for pieces, row in zip(cut, effects, strict=True)
    ]


def cut_out(caption: str, most_words: int = _MOST_WORDS) -> list[Piece]:
    """A caption in pieces, and what is left of it without each word; punctuation is no word."""
    tokens = tokenize(caption)[:most_words]
    pieces: list[Piece] = []
    at = 0
    for token, span in zip(tokens, _spans(caption, tokens), strict=True):
        if span is None or not any(map(str.isalnum, token)):
            continue
        start, end = span
        if start > at:
            pieces.append(Piece(caption[at:start]))
        pieces.append(Piece(caption[start:end], f"{caption[:start]} {caption[end:]}"))
        at = end
    return [*pieces, Piece(caption[at:])] if at < len(caption) else pieces


def _effects(
    run: TrainedRun, data: PairData, image_row: int, caption: str, pieces: Sequence[Piece]
) -> list[float | None]:
    """What the score gains from each piece; None for what is no word, and for words the model does not know."""
    vocabulary = run.vocabulary
    known = [
        p.rest is not None and (vocabulary is None or UNK not in vocabulary.encode(tokenize(p.text))) for p in pieces
    ]
    rests = [p.rest for p, word in zip(pieces, known, strict=True) if word and p.rest is not None]
    if not rests:
        return [None] * len(pieces)
    scores = run.score(data.images.subset(np.array([image_row])), [caption, *rests])[0]
    lost = iter((scores[0] - scores[1:]).tolist())
    return [next(lost) if word else None for word in known]


def _spans(caption: str, tokens: list[str]) -> list[tuple[int, int] | None]:
    """Where each token stands in the caption; None where it cannot be found again (changed quotes)."""
    lower = caption.lower()
    if len(lower) != len(caption):  # a few letters grow when lowered: places would be wrong
        return [None] * len(tokens)
    places: list[tuple[int, int] | None] = []
    at = 0
    for token in tokens:
        start = lower.find(token, at)
        places.append(None if start < 0 else (start, start + len(token)))
        at = at if start < 0 else start + len(token)
    return places
