"""The pieces of rematching very many pairs, each on its own: shortlists, blocks of transport, judging what came of it.

A piece reads the data, the frame and what lies in the workplace. It is cut at fixed numbers, so that it makes the very
same products whoever does it.

Letters: s suspects (one text each), n their images, k texts on a shortlist, C cells (image, text) that are proposed.
"""

from __future__ import annotations

from functools import cached_property, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mispair.auditing.blocks import DIVISION, ROUNDS, heaviest, solve_block
from mispair.auditing.proposals import LIGHTEST, assign
from mispair.progress import Tell
from mispair.scale.evidence import BLOCK, Measure
from mispair.scale.frame import Frame
from mispair.scale.shortlists import STEP, Texts
from mispair.scale.suspects import ManySuspects
from mispair.scale.vectors import PairVectors, Rows
from mispair.scale.workplace import Arrays, Spread, Workplace

Floats = NDArray[np.float64]


class RematchPieces:
    """Does pieces, named as "STEP NUMBER START STOP": which images, blocks or cells."""

    def __init__(self, data: PairVectors, frame: Frame, folder: Path) -> None:
        self.data, self.frame, self.place = data, frame, Workplace(folder)

    def do(self, piece: str) -> None:
        """What it finds out is left in the workplace."""
        step, number, start, stop = piece.split()
        do = {"shortlist": self._shortlist, "rematch": self._rematch, "judge": self._judge}[step]
        self.place.leave(step, int(number), do(int(start), int(stop)))

    @cached_property
    def _suspects(self) -> ManySuspects:
        return ManySuspects.load(self.place)

    @cached_property
    def _texts(self) -> Texts:
        return Texts.load(self.place)

    @cached_property
    def _measure(self) -> Measure:
        return Measure(self.frame)

    def _shortlist(self, start: int, stop: int) -> Arrays:
        """Of each image the k texts that fit best, their scores, and the group of texts it lies nearest to."""
        facts, texts = self.place.facts(), self._texts
        rows = np.arange(start, stop)
        images = self.frame.unit(self.data.image_vectors(self._suspects.shown[rows]), 0)
        listed = np.empty((len(rows), facts["k"]), np.int32)
        score = np.empty(listed.shape, np.float32)
        for at in range(0, len(rows), STEP):
            here = slice(at, at + STEP)
            # A text that stands with this image already is given, not proposed.
            allowed = partial(_elsewhere, self._suspects.image, rows[here])
            listed[here], score[here] = texts.search(images[here], facts["k"], allowed)
        return {"listed": listed, "score": score / np.float32(facts["spread"]), "group": texts.groups(images)}

    def _rematch(self, start: int, stop: int) -> Arrays:
        """Of each suspect of some blocks the text it should have, -1 where none, and of each text the image."""
        suspects, blocks = self._suspects, self.place.facts()["blocks"]
        order, count = self.place.array("order"), len(suspects.shown)
        parts: list[Arrays] = []
        for block in range(start, stop):
            mine = np.sort(order[count * block // blocks : count * (block + 1) // blocks])
            r, cols, weight = self._plan(mine, blocks > 1)
            shown = suspects.of_images(mine)
            own = np.searchsorted(mine, suspects.image[shown])
            chosen, by = assign(own, r, cols, weight, suspects.p[shown] > 0.5)
            heavy = weight > LIGHTEST
            cells = {"text": cols[heavy], "image": mine[r[heavy]], "image_weight": weight[heavy]}
            parts.append({"pair": shown, "caption": chosen, "weight": by} | cells)
        found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        best = heaviest_first(found["text"], found["image_weight"])
        return found | {name: found[name][best] for name in ("text", "image", "image_weight")}

    def _plan(self, mine: Rows, many: bool) -> tuple[Rows, Rows, Floats]:
        """The transport of one block, images `mine`: position in it, text and mass of each cell."""
        listed = self.place.array("listed")[mine]
        r, at = np.nonzero(listed >= 0)
        cols, fits = listed[r, at].astype(np.int64), self.place.array("score")[mine][r, at].astype(np.float64)
        if not len(r):
            return r, cols, fits
        texts, c = np.unique(cols, return_inverse=True)
        share = np.bincount(c, np.exp((fits - self.place.array("best")[cols]) / DIVISION))
        allotted = (self._suspects.p[texts] * share / self.place.array("total")[texts])[c]
        kept = heaviest(np.arange(len(r)), cols, allotted, self.place.facts()["most"])
        r, cols, fits, allotted = r[kept], cols[kept], fits[kept], allotted[kept]
        rows, r_local = np.unique(r, return_inverse=True)
        _, first, c = np.unique(cols, return_index=True, return_inverse=True)
        mass = self.place.array("mass")[mine[rows]]
        return r, cols, solve_block(r_local, c, fits, mass, allotted[first], ROUNDS[many])

    def _judge(self, start: int, stop: int) -> Arrays:
        """Whether each cell looks matched, and its score; one that scores no more than `least` does not."""
        images, texts, least = (
            np.asarray(self.place.array(f"cell-{name}")[start:stop]) for name in ("image", "text", "least")
        )
        convincing = self.place.facts()["convincing"]
        good, score = np.zeros(len(images), bool), np.empty(len(images), np.float32)
        for at in range(0, len(images), BLOCK):
            here = slice(at, at + BLOCK)
            one, other = images[here], texts[here]
            vectors = self.data.image_vectors(one), self.data.text_vectors(other)
            score[here], better, evidence = self._measure.cells(other, self.data.image_rows(one), *vectors, least[here])
            good[at + better] = self.frame.near.suspicion(evidence) <= convincing
        return {"good": good, "score": score}


def in_this_process(data: PairVectors, frame: Frame) -> Spread:
    """One piece after the other, here."""

    def run(folder: Path, pieces: list[str], what: str, tell: Tell) -> None:
        mine = RematchPieces(data, frame, folder)
        for done, piece in enumerate(pieces, 1):
            mine.do(piece)
            tell(what, done, len(pieces))

    return run


def heaviest_first(text: Rows, weight: Floats) -> Rows:
    """Which cells (C,) are the heaviest of their text, one for each; of equal ones the first."""
    order = np.lexsort((-weight, text))
    return order[np.unique(text[order], return_index=True)[1]]


def _elsewhere(image_of: Rows, images: Rows, texts: Rows) -> NDArray[np.bool_]:
    """Which texts (b, c) stand with another image than those (b,) they are asked for."""
    return np.asarray(image_of[texts] != images[:, None])
