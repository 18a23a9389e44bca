"""Which words of a caption speak for the picture: what the score loses when a word is left out.

The score goes through the model's own attention, so this asks the whole model, and it is exact for every backbone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from mispair.config.assemble import LoadedRun
from mispair.data import PairData
from mispair.data.collate import gather
from mispair.data.text import UNK, TokenStore
from mispair.data.tokenizer import tokenize
from mispair.report.content import Word
from mispair.retrieval.scoring import evaluating

HOW = (
    "Words are judged by leaving each one out and scoring the rest against the picture with the same model: blue words "
    "raise the score, orange dotted ones lower it; the stronger the mark, the more."
)
_MOST_WORDS = 60  # of one caption; a longer one is judged by its beginning


def judge_words(
    run: LoadedRun, data: PairData, image_row: int, captions: Sequence[str], most_words: int = _MOST_WORDS
) -> list[list[Word]]:
    """Each caption in pieces, with the agreement of its words; the strongest word of all captions has 1 or -1."""
    spans = [_spans(caption, tokenize(caption)[:most_words]) for caption in captions]
    effects = [_effects(run, data, image_row, tokenize(caption)[:most_words]) for caption in captions]
    strongest = max((abs(effect) for row in effects for effect in row if effect is not None), default=0.0) or 1.0
    return [
        _pieces(caption, places, [None if e is None else e / strongest for e in row])
        for caption, places, row in zip(captions, spans, effects, strict=True)
    ]


@torch.no_grad()
def _effects(run: LoadedRun, data: PairData, image_row: int, tokens: list[str]) -> list[float | None]:
    """What the score gains from each word; None for punctuation and words the model does not know."""
    vocabulary = run.vocabulary
    assert vocabulary is not None, "words are judged where there are words"
    if not tokens:
        return []
    ids = vocabulary.encode(tokens)
    rows = [ids, *([*ids[: k + 1], *ids[k + 2 :]] for k in range(len(tokens)))]
    offsets = np.cumsum([0, *(len(row) for row in rows)])
    store = TokenStore(np.concatenate(rows).astype(np.int32), offsets)
    texts, text_mask = gather(store, np.arange(len(rows)))
    images, image_mask = data.image_batch(np.array([image_row]))
    total = torch.zeros(len(rows))
    for model in run.models:
        with evaluating(model):
            shown, said = model.encode_images(images, image_mask), model.encode_texts(texts, text_mask)
            total += model.link(model.similarity(shown, said))[0].float()
    scores = (total / len(run.models)).tolist()
    return [
        scores[0] - scores[k + 1] if ids[k + 1] != UNK and any(map(str.isalnum, token)) else None
        for k, token in enumerate(tokens)
    ]


def _spans(caption: str, tokens: list[str]) -> list[tuple[int, int] | None]:
    """Where each token stands in the caption; None where it cannot be found again (changed quotes)."""
    lower = caption.lower()
    if len(lower) != len(caption):  # a few letters grow when lowered: places would be wrong
        return [None] * len(tokens)
    found: list[tuple[int, int] | None] = []
    at = 0
    for token in tokens:
        start = lower.find(token, at)
        found.append(None if start < 0 else (start, start + len(token)))
        at = at if start < 0 else start + len(token)
    return found


def _pieces(caption: str, spans: list[tuple[int, int] | None], effects: list[float | None]) -> list[Word]:
    pieces: list[Word] = []
    at = 0
    for span, effect in zip(spans, effects, strict=True):
        if span is None:
            continue
        if span[0] > at:
            pieces.append(Word(caption[at : span[0]]))
        pieces.append(Word(caption[span[0] : span[1]], effect))
        at = span[1]
    if at < len(caption):
        pieces.append(Word(caption[at:]))
    return pieces
