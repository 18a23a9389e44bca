"""What should the suspicious pairs have been, out of very many? Masked partial transport, block by block, on disk.

As `mispair.auditing.proposals`, which holds all vectors and compares all suspects with all: images and texts of
suspicious pairs are free to go elsewhere, given pairs carry no mass. Here shortlists come from an inverted file, they
and the vectors of the texts lie on disk, and a block of images that lie together is rematched at a time. What can be
done piece by piece (`rematch_pieces`) is done by whoever `spread` says; here is what lies between.

Letters: N pairs, s suspects (one text each), n their images, k texts on a shortlist, C cells that are proposed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from mispair.auditing.blocks import COLUMNS, DIVISION, ROWS
from mispair.auditing.proposals import SHORTLIST, Proposals, exchanges
from mispair.progress import Tell
from mispair.scale.evidence import Measure
from mispair.scale.frame import Frame
from mispair.scale.rematch_pieces import Floats, heaviest_first, in_this_process
from mispair.scale.shortlists import Texts, together
from mispair.scale.suspects import ManySuspects
from mispair.scale.vectors import Floats32, PairVectors, Rows
from mispair.scale.workplace import Arrays, Spread, Workplace

PIECE = 8192  # images shortlisted, or cells judged, at a time
BLOCKS = 16  # of transport


@dataclass(frozen=True)
class Where:
    """Who does the pieces, and in which folder; by default this process, in one of the system's own."""

    spread: Spread | None = None
    folder: Path | None = None


HERE = Where()


def propose_among_many(
    data: PairVectors, frame: Frame, p: Floats, scores: Floats32, convincing: float, tell: Tell, where: Where
) -> Proposals:
    """Proposals for the pairs that are more likely mismatched than not; p and scores are (N,).

    Args:
        convincing: suspicion up to which a proposed pair looks matched.
    """
    suspects = ManySuspects.among(data, p)
    if len(suspects.pairs) < 2:
        nothing, none = np.full(len(p), -1, np.int64), np.full(len(p), np.nan)
        return Proposals(nothing, none, none, nothing, none, none, nothing)
    with tempfile.TemporaryDirectory(prefix="mispair-rematch-", dir=where.folder) as scratch:
        place = Workplace(Path(scratch))
        suspects.save(place)
        job = _Job(data, frame, suspects, place, where.spread or in_this_process(data, frame), tell)
        job.shortlist(convincing)
        return job.judge(job.rematch(), scores)


@dataclass(frozen=True, eq=False)
class _Job:
    data: PairVectors
    frame: Frame
    suspects: ManySuspects
    place: Workplace
    spread: Spread
    tell: Tell

    def shortlist(self, convincing: float) -> None:
        """Leave the shortlists of all images, and what the blocks of the transport need to know."""
        suspects, place = self.suspects, self.place
        count, size = len(suspects.shown), len(suspects.pairs)
        indexed = self._write_texts()
        blocks = 1 if count <= 2 * ROWS else count // ROWS
        most = COLUMNS * -(-size // count) if blocks > 1 else size
        k = min(SHORTLIST, size)
        facts = {"k": k, "blocks": blocks, "most": most, "convincing": convincing, "spread": self._spread_of_scores()}
        place.keep_facts(**facts)
        listed, score = place.make("listed", np.int32, (count, k)), place.make("score", np.float32, (count, k))
        group, at = np.empty(count, np.int64), 0
        for found in self._pieces("shortlist", count, PIECE, "shortlisting partners"):
            here = slice(at, at + len(found["listed"]))
            listed[here], score[here], group[here] = found["listed"], found["score"], found["group"]
            at = here.stop
        for array in (listed, score):  # other machines read them
            array.flush()
        best, total = _fits(listed, score, size)
        mass = np.bincount(suspects.image, suspects.p, count).astype(np.float64)
        order = np.argsort(group, kind="stable") if indexed or blocks == 1 else together(self._images(), ROWS)
        place.keep(best=best, total=total, mass=mass, order=order)

    def rematch(self) -> tuple[Rows, Floats, Rows, Floats]:
        """For every suspect the suspect whose text (image) it should have, -1 where none, and the weight; each (s,)."""
        suspects, size = self.suspects, len(self.suspects.pairs)
        caption, caption_weight = np.full(size, -1, np.int64), np.full(size, np.nan)
        texts, images, weights = [], [], []
        for found in self._pieces("rematch", self.place.facts()["blocks"], BLOCKS, "rematching"):
            caption[found["pair"]], caption_weight[found["pair"]] = found["caption"], found["weight"]
            texts.append(found["text"])
            images.append(found["image"])
            weights.append(found["image_weight"])
        text, weight = np.concatenate(texts), np.concatenate(weights)
        best = heaviest_first(text, weight)
        holder = suspects.by_image[suspects.first[:-1]]  # the most suspicious pair of each image
        image, image_weight = np.full(size, -1, np.int64), np.zeros(size)
        image[text[best]], image_weight[text[best]] = holder[np.concatenate(images)[best]], weight[best]
        image[suspects.p <= 0.5] = -1
        return caption, caption_weight, image, image_weight

    def judge(self, found: tuple[Rows, Floats, Rows, Floats], scores: Floats32) -> Proposals:
        """Those that look matched and score above the given pair; and the pairs that an exchange of captions mends."""
        caption, caption_weight, image, image_weight = found
        pairs, size = self.suspects.pairs, len(scores)
        with_caption, with_image = np.flatnonzero(caption >= 0), np.flatnonzero(image >= 0)
        one, other = pairs[with_caption], pairs[caption[with_caption]]
        text, shown = pairs[with_image], pairs[image[with_image]]
        # Which image with which text, by their pairs, and the score it must beat; last the other half of an exchange.
        forth, of_texts, back = self._ask(
            [(one, other, scores[one]), (shown, text, scores[text]), (other, one, scores[other])], size
        )
        by_caption = _filled(size, one, other, np.minimum(caption_weight[with_caption], 1.0), *forth)
        by_image = _filled(size, text, shown, np.minimum(image_weight[with_image], 1.0), *of_texts)
        mends = forth[0] & back[0]
        return Proposals(*by_caption, *by_image, exchanges(one[mends], other[mends], size))

    def _ask(self, asked: list[tuple[Rows, Rows, Floats32]], size: int) -> list[tuple[NDArray[np.bool_], Floats]]:
        """Whether each cell looks matched and scores above its level, and by how much; a cell is judged once."""
        keys = [images * size + texts for images, texts, _ in asked]
        cells, at = np.unique(np.concatenate(keys), return_inverse=True)
        least = np.full(len(cells), np.inf, np.float32)
        np.minimum.at(least, at, np.concatenate([level for _, _, level in asked]))
        self.place.keep(**{"cell-image": cells // size, "cell-text": cells % size, "cell-least": least})
        good, score = np.empty(len(cells), bool), np.empty(len(cells), np.float32)
        done = 0
        for found in self._pieces("judge", len(cells), PIECE, "judging proposals"):
            here = slice(done, done + len(found["good"]))
            good[here], score[here] = found["good"], found["score"]
            done = here.stop
        answers = []
        for place, (_, _, level) in zip(np.split(at, np.cumsum([len(key) for key in keys])[:-1]), asked, strict=True):
            gain = (score[place] - level).astype(np.float64)
            answers.append((good[place] & (gain > 0), gain))
        return answers

    def _pieces(self, step: str, total: int, size: int, what: str) -> Iterator[Arrays]:
        """What the pieces of a step find out, in order; `size` of `total` in each."""
        count = -(-total // size)
        names = [f"{step} {k} {k * size} {min((k + 1) * size, total)}" for k in range(count)]
        self.spread(self.place.path, names, what, self.tell)
        return self.place.collect(step, count)

    def _write_texts(self) -> bool:
        """Leave the vectors of the texts; whether they have an index."""
        pairs, unit = self.suspects.pairs, self.frame.unit
        parts = (unit(self.data.text_vectors(pairs[at : at + PIECE]), 1) for at in range(0, len(pairs), PIECE))
        return Texts.write(parts, len(pairs), self.frame.texts.shape[1], self.place)

    def _images(self) -> Tensor:
        """(n, d), where that is few."""
        return self.frame.unit(self.data.image_vectors(self.suspects.shown), 0)

    def _spread_of_scores(self) -> float:
        """Standard deviation of a random cell: one entropy then suits every model."""
        rng, pairs = np.random.default_rng(0), self.suspects.pairs
        one, other = (pairs[rng.integers(0, len(pairs), 2000)] for _ in range(2))
        scores = Measure(self.frame).score(self.data.image_vectors(one), self.data.text_vectors(other))
        return float(scores.std()) or 1.0


def _fits(listed: NDArray[np.int32], score: Floats32, size: int) -> tuple[Floats, Floats]:
    """Of every text the score with the image it fits best, and how well it fits all together: a text divides its mass
    among the blocks by how it fits their images."""
    best, total = np.full(size, -np.inf), np.zeros(size)
    for sweep in (0, 1):
        for at in range(0, len(listed), PIECE):
            part = listed[at : at + PIECE].ravel()
            there = part >= 0
            cols, fits = part[there], score[at : at + PIECE].ravel()[there].astype(np.float64)
            if sweep == 0:
                np.maximum.at(best, cols, fits)
            else:
                np.add.at(total, cols, np.exp((fits - best[cols]) / DIVISION))
    return best, total


def _filled(
    size: int, pairs: Rows, partners: Rows, weight: Floats, good: NDArray[np.bool_], gain: Floats
) -> tuple[Rows, Floats, Floats]:
    """Partner, weight and gain of every pair, (N,) each: -1 and NaN where nothing good is proposed."""
    proposed, by_weight, by_gain = np.full(size, -1, np.int64), np.full(size, np.nan), np.full(size, np.nan)
    proposed[pairs[good]], by_weight[pairs[good]], by_gain[pairs[good]] = partners[good], weight[good], gain[good]
    return proposed, by_weight, by_gain
