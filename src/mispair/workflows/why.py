"""Why a text found a picture: the words and the regions that carried the score, by leaving each one out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mispair.errors import InputError
from mispair.pictures.decode import Broken, decode
from mispair.pictures.given import as_png
from mispair.searching.query import Why
from mispair.workflows.report.words import cut_out

_GRID = 5  # regions a side
_MOST_WORDS = 60  # of a text; a longer one is judged by its beginning
_SIDE = 320  # pixels of the picture whose regions are covered
_HOW = "Each word was left out, and each region of the picture covered: the marked ones cost the score most."
_WORDS = "Each word was left out: the marked ones cost the score most."


class PartScores(Protocol):
    """What is asked of a model: scores of texts with the picture of a pair, and of pictures with a text."""

    def unknown(self, text: str) -> tuple[str, ...]: ...

    def score_texts(self, pair: int, texts: Sequence[str]) -> NDArray[np.float32]: ...

    def score_pictures(self, pictures: Sequence[bytes], text: str) -> NDArray[np.float32] | None: ...


def explainer(scores: PartScores, picture_of: Callable[[int], bytes | None]) -> Callable[[int, str, bool], Why]:
    """What says why a text fits the picture of a pair; with its regions too where asked for, which takes longer.

    Args:
        picture_of: the picture file of a pair; None where it is not there.
    """

    @lru_cache(maxsize=8)  # a few MB each
    def covered(pair: int) -> tuple[bytes, ...]:
        data = picture_of(pair)
        return () if data is None else cover_regions(data)

    def explain(pair: int, text: str, regions: bool = True) -> Why:
        score, words = _words(scores, pair, text)
        if not regions:
            return Why(score, words, how=_WORDS)
        pictures = covered(pair)
        if not pictures:
            return Why(score, words, how=f"{_WORDS} No picture is at hand to look at its regions.")
        scored = scores.score_pictures(pictures, text)
        if scored is None:
            return Why(score, words, how=f"{_WORDS} This model was given features, and nobody knows where these lie.")
        lost = (scored[0] - scored[1:]).reshape(_GRID, _GRID)
        return Why(score, words, tuple(tuple(float(v) for v in row) for row in lost), _HOW)

    return explain


def cover_regions(data: bytes) -> tuple[bytes, ...]:
    """A picture file as it is, then with each cell of a grid covered by its mean colour, row by row; PNG files.

    Nothing where it cannot be decoded.
    """
    from PIL import Image

    picture = decode(data, _SIDE)
    if isinstance(picture, Broken):
        return ()
    picture.thumbnail((2 * _SIDE, 2 * _SIDE))
    pixels = np.asarray(picture)
    mean = pixels.reshape(-1, 3).mean(0).astype(np.uint8)
    down, across = (np.linspace(0, size, _GRID + 1).round().astype(int) for size in pixels.shape[:2])
    made = [as_png(Image.fromarray(pixels))]
    for top, bottom in pairwise(down):
        for left, right in pairwise(across):
            changed = pixels.copy()
            changed[top:bottom, left:right] = mean
            made.append(as_png(Image.fromarray(changed)))
    return tuple(made)


def _words(scores: PartScores, pair: int, text: str) -> tuple[float, tuple[tuple[str, float | None], ...]]:
    if not text.strip():
        raise InputError("there are no words to explain")
    pieces = cut_out(text, _MOST_WORDS)
    asked = [text, *(piece.rest for piece in pieces if piece.rest is not None)]
    scored = scores.score_texts(pair, asked)
    unknown = set(scores.unknown(text))
    lost = iter((scored[0] - scored[1:]).tolist())
    words: list[tuple[str, float | None]] = []
    for piece in pieces:
        carried = None if piece.rest is None else next(lost)
        words.append((piece.text, None if piece.text.lower() in unknown else carried))
    return float(scored[0]), tuple(words)
