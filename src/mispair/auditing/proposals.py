"""What should the suspicious pairs have been? Masked partial transport between their images and their captions.

The images and captions of suspicious pairs are free to go elsewhere; a pair that matches keeps both. Every image brings
the mass of its suspicious pairs, every caption likewise, given pairs carry none, and some mass may stay where it is: an
image whose caption is lost is left unmatched. Cells are those on the shortlist of either side.

Letters: n images and m texts among the suspicious pairs (suspects), C cells, N pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mispair.auditing.blocks import MANY, transport
from mispair.auditing.calibration import Calibration
from mispair.auditing.similarity import Rows, best_partners, cell_scores
from mispair.auditing.space import Scores, Space
from mispair.progress import Tell, silent

Floats = NDArray[np.float64]

SUSPECT = 0.25  # p_mismatch from which an image and a caption take part
SHORTLIST = 32
LIGHTEST = 0.2  # share of a pair's mass below which nothing is proposed
_ASKED = 500  # pairs of captions that are asked whether they moved together


@dataclass(frozen=True, slots=True)
class Proposals:
    """For every pair the pair whose caption (image) fits its image (caption) better; -1 where nothing does."""

    caption_pair: Rows  # (N,)
    caption_weight: Floats  # (N,) share of a pair's mass that the plan moves there
    caption_gain: Floats  # (N,) score there less the given score
    image_pair: Rows
    image_weight: Floats
    image_gain: Floats
    swap_with: Rows


@dataclass(frozen=True)
class _Suspects:
    """The pairs that take part, and their distinct images and texts."""

    pairs: Rows  # (s,) pair ids, most suspicious first
    images: Rows  # (n,) distinct image rows
    texts: Rows  # (m,)
    image: Rows  # (s,) position of each pair's image in `images`
    text: Rows  # (s,)
    p: Floats  # (s,)


def propose(
    space: Space,
    image_rows: Rows,
    text_rows: Rows,
    p_mismatch: Floats,
    scores: Scores,
    calibration: Calibration,
    tell: Tell = silent,
) -> Proposals:
    """Proposals for the pairs that are more likely mismatched than not. Rows, p and scores are (N,)."""
    count = len(image_rows)
    nothing, none = np.full(count, -1, np.int64), np.full(count, np.nan)
    pairs = np.flatnonzero(p_mismatch > SUSPECT)
    if len(pairs) < 2:
        return Proposals(nothing, none, none, nothing, none, none, nothing)
    pairs = pairs[np.argsort(-p_mismatch[pairs], kind="stable")]
    images, image = np.unique(image_rows[pairs], return_inverse=True)
    texts, text = np.unique(text_rows[pairs], return_inverse=True)
    suspects = _Suspects(pairs, images, texts, image, text, p_mismatch[pairs])
    given = image_rows * len(space.texts) + text_rows
    rows, cols, cell_score = _cells(space, suspects, given, tell)
    masses = [
        np.bincount(item, suspects.p, count).astype(np.float64)
        for item, count in ((image, len(images)), (text, len(texts)))
    ]
    vectors = space.images[torch.from_numpy(images)]
    weight = transport(
        rows, cols, cell_score, masses[0], masses[1], vectors, lambda done, total: tell("rematching", done, total)
    )
    issues = p_mismatch[pairs] > 0.5
    result = []
    for own, partner, other in ((image, cols, text), (text, rows, image)):
        query = rows if partner is cols else cols
        chosen, share = assign(own, query, partner, weight, issues)
        holder = _holders(other, chosen)  # the pair that holds what is proposed
        proposed, by_weight = nothing.copy(), none.copy()
        there = holder >= 0
        proposed[pairs[there]], by_weight[pairs[there]] = pairs[holder[there]], share[there]
        result.append((proposed, by_weight))
    (caption_pair, caption_weight), (image_pair, image_weight) = result
    caption_pair, caption_gain = _accepted(space, image_rows, text_rows, caption_pair, scores, calibration, tell)
    back, image_gain = _accepted(space, text_rows, image_rows, image_pair, scores, calibration, tell, flipped=True)
    swap = _swaps(space, image_rows, text_rows, caption_pair, scores, calibration)
    return Proposals(
        caption_pair,
        np.where(caption_pair >= 0, caption_weight, np.nan),
        caption_gain,
        back,
        np.where(back >= 0, image_weight, np.nan),
        image_gain,
        swap,
    )


def _cells(space: Space, suspects: _Suspects, given: Rows, tell: Tell) -> tuple[Rows, Rows, Floats]:
    """Cells on the shortlist of an image or of a text, without the given pairs: positions, and scores to rematch by.

    The scores are in standard deviations of a random cell, so that one entropy suits every model.
    """
    a = space.images[torch.from_numpy(suspects.images)]
    b = space.texts[torch.from_numpy(suspects.texts)]
    witnesses = _witnesses(a, b, suspects)
    sought = b if witnesses is None else (b + witnesses) / 2
    keys = []
    # Of very many, the shortlists of the images alone: they name nearly every text, in half the time.
    both = ((a, sought, True), (sought, a, False))
    for one, other, by_image in both if len(a) <= MANY else both[:1]:
        partners = best_partners(one, other, SHORTLIST, lambda done, total: tell("shortlisting partners", done, total))[
            1
        ].numpy()
        query = np.repeat(np.arange(len(one)), partners.shape[1])
        other_end = partners.ravel()
        keys.append(query * len(b) + other_end if by_image else other_end * len(b) + query)
    cells = np.unique(np.concatenate(keys))
    rows, cols = cells // len(b), cells % len(b)
    free = ~np.isin(suspects.images[rows] * len(space.texts) + suspects.texts[cols], given)
    rows, cols = rows[free], cols[free]
    rng = np.random.default_rng(0)
    at_random = rng.integers(0, len(a), 2000), rng.integers(0, len(b), 2000)

    def standard(score: Callable[[Rows, Rows], Scores]) -> Floats:
        spread = float(score(*at_random).std())
        return np.asarray(score(rows, cols).astype(np.float64) / (spread or 1.0))

    own = standard(lambda r, c: space.score(suspects.images[r], suspects.texts[c], "scoring partners"))
    if witnesses is None:
        return rows, cols, own
    return rows, cols, (own + standard(lambda r, c: cell_scores(a, witnesses, r, c))) / 2


def _witnesses(a: Tensor, b: Tensor, suspects: _Suspects) -> Tensor | None:
    """Where captions moved together: the mean vector of the captions shown with the same image, (m, d).

    A file off by some rows moves all captions of an image to one other image. Then two captions shown with one image
    want the same other image far more often than two captions do that have nothing to do with each other.
    """
    order = np.argsort(suspects.image, kind="stable")
    fellows = np.flatnonzero(suspects.image[order][1:] == suspects.image[order][:-1])
    fellows = fellows[np.linspace(0, len(fellows) - 1, min(len(fellows), _ASKED)).astype(np.int64)]
    if len(fellows) < 10:
        return None
    shown = torch.from_numpy(suspects.image[order[fellows]])
    wanted = []
    for texts in (suspects.text[order[fellows]], suspects.text[order[fellows + 1]]):
        product = b[torch.from_numpy(texts)] @ a.T
        product[torch.arange(len(texts)), shown] = -torch.inf
        wanted.append(product.argmax(1).numpy())
    agreed = float((wanted[0] == wanted[1]).mean())
    by_chance = float((wanted[0] == np.roll(wanted[1], len(fellows) // 2)).mean())
    if agreed < 2 * by_chance + 0.05:
        return None
    image, text = torch.from_numpy(suspects.image), torch.from_numpy(suspects.text)
    total = torch.zeros(len(a), b.shape[1]).index_add_(0, image, b[text])
    mean = total / torch.bincount(image, minlength=len(a)).unsqueeze(1)
    group = torch.zeros(len(b), dtype=torch.long)
    group[text] = image
    return mean[group]


def assign(
    own: Rows, query: Rows, partner: Rows, weight: Floats, issues: NDArray[np.bool_]
) -> tuple[Rows, NDArray[np.float64]]:
    """The partner of each suspicious pair: an image with c such pairs takes its c heaviest texts, one each.

    own (s,) the item of each pair, query and partner (C,) the ends of each cell. -> partner (s,) or -1, weight (s,).
    """
    carried = np.flatnonzero(weight > LIGHTEST)
    order = carried[np.lexsort((-weight[carried], query[carried]))]
    place_in_item = _running_number(query[order])
    chosen, share = np.full(len(own), -1, np.int64), np.full(len(own), np.nan)
    turn = np.flatnonzero(issues)
    number = np.empty(len(turn), np.int64)
    by_item = np.argsort(own[turn], kind="stable")
    number[by_item] = _running_number(own[turn][by_item])
    width = int(max(place_in_item.max(initial=0), number.max(initial=0))) + 1
    heap = query[order] * width + place_in_item
    wanted = own[turn] * width + number
    at = np.searchsorted(heap, wanted)
    there = (at < len(heap)) & (heap[np.minimum(at, max(len(heap) - 1, 0))] == wanted) if len(heap) else at < 0
    cells = order[at[there]]
    chosen[turn[there]], share[turn[there]] = partner[cells], np.minimum(weight[cells], 1.0)
    return chosen, share


def _running_number(keys: Rows) -> Rows:
    """0, 1, 2, ... within each run of equal keys."""
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if len(keys) else np.zeros(0, np.int64)
    return np.arange(len(keys)) - np.repeat(starts, np.diff(np.append(starts, len(keys))))


def _holders(item_of_pair: Rows, wanted: Rows) -> Rows:
    """The first suspicious pair that holds each wanted item, -1 where none is wanted."""
    first = np.full(int(item_of_pair.max()) + 1, -1, np.int64)
    first[item_of_pair[::-1]] = np.arange(len(item_of_pair))[::-1]
    return np.where(wanted >= 0, first[wanted], -1)


def _accepted(
    space: Space,
    own: Rows,
    other: Rows,
    partner: Rows,
    scores: Scores,
    calibration: Calibration,
    tell: Tell,
    flipped: bool = False,
) -> tuple[Rows, Floats]:
    """The proposals that look matched and score above the given pair, and by how much."""
    asked = np.flatnonzero(partner >= 0)
    rows, cols = own[asked], other[partner[asked]]
    convincing, score = _judged(space, *((cols, rows) if flipped else (rows, cols)), calibration, tell)
    gain = (score - scores[asked]).astype(np.float64)
    good = convincing & (gain > 0)
    accepted, by = np.full(len(own), -1, np.int64), np.full(len(own), np.nan)
    accepted[asked[good]], by[asked[good]] = partner[asked[good]], gain[good]
    return accepted, by


def _judged(
    space: Space, rows: Rows, cols: Rows, calibration: Calibration, tell: Tell
) -> tuple[NDArray[np.bool_], Scores]:
    if len(rows) == 0:
        return np.zeros(0, bool), np.zeros(0, np.float32)
    cells = space.measure(rows, cols, tell)
    return calibration.convinces(cells.evidence(len(space.images), len(space.texts))), cells.score


def _swaps(
    space: Space, image_rows: Rows, text_rows: Rows, caption_pair: Rows, scores: Scores, calibration: Calibration
) -> Rows:
    """The pair with which exchanging captions mends both: the way back must look matched too."""
    asked = np.flatnonzero(caption_pair >= 0)
    partner = caption_pair[asked]
    convincing, back = _judged(space, image_rows[partner], text_rows[asked], calibration, silent)
    mends = convincing & (back > scores[partner])
    return exchanges(asked[mends], partner[mends], len(image_rows))


def exchanges(one: Rows, other: Rows, size: int) -> Rows:
    """(N,), N = `size`: the pair with which to exchange captions, -1: none; of these wishes the earlier ones win."""
    swap = np.full(size, -1, np.int64)
    for a, b in zip(one.tolist(), other.tolist(), strict=True):
        if swap[a] < 0 and swap[b] < 0 and a != b:
            swap[a], swap[b] = b, a
    return swap
