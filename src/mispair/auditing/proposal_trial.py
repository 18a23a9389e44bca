"""How good are the proposals, where nobody knows the truth? Move captions of matched pairs on purpose and see.

Some pairs that match are given each other's captions, as if somebody had mixed them up; others get a caption that fits
nobody here, while their own is taken away, as if it had been lost. Rematching is then asked again, with the suspicious
pairs of the data still among them. How often moved captions are led home, and how often something is proposed where
the right caption is lost, says what to expect of the proposals that the data itself gets.

Letters: N pairs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from mispair.auditing.calibration import Calibration, never_falling
from mispair.auditing.facts import RematchTrial
from mispair.auditing.proposals import SUSPECT, Proposals, propose
from mispair.auditing.similarity import Rows
from mispair.auditing.space import Scores, Space
from mispair.progress import Tell, silent

Floats = NDArray[np.float64]

_FEWEST, _MOST = 40, 1000  # pairs of each kind
_SHARE = 0.05  # of the matched pairs, for each kind
_TOGETHER = 0.75  # share of suspicious pairs beside a suspicious one from which whole images are mixed up
_PER_LEVEL = 15  # proposals that make one level of the weight


def try_rematching(
    space: Space,
    image_rows: Rows,
    text_rows: Rows,
    p_mismatch: Floats,
    proposals: Proposals,
    calibration: Calibration,
    tell: Tell = silent,
) -> RematchTrial | None:
    """What to expect of `proposals`. Rows and p are (N,). None where too few pairs match to learn from them."""
    units, together = _units(image_rows, p_mismatch)
    count = int(np.clip(_SHARE * units.size, _FEWEST, _MOST)) // units.shape[1]
    others = np.setdiff1d(np.flatnonzero(p_mismatch <= SUSPECT), units[: 2 * count])
    if len(units) < 2 * count or len(others) < count * units.shape[1]:
        return None
    moving, lost = units[:count], units[count : 2 * count].ravel()
    donors = np.random.default_rng(1).permutation(others)[: len(lost)]
    shown = text_rows.copy()
    for place, column in enumerate(moving.T):
        shown[column] = text_rows[np.roll(column, 1 if together else place + 1)]
    shown[lost] = text_rows[donors]
    moved = moving.ravel()
    issues = p_mismatch > 0.5
    p = p_mismatch.copy()
    p[moved] = p[lost] = np.median(p_mismatch[issues]) if issues.any() else 0.95
    asked = np.setdiff1d(np.arange(len(shown)), donors)  # their captions stand elsewhere now
    there = _without_texts(space, text_rows[lost], text_rows[donors])
    image_rows, given, shown, p = image_rows[asked], text_rows[asked], shown[asked], p[asked]
    scores = there.score(image_rows, shown, "trying to rematch")
    trial = propose(there, image_rows, shown, p, scores, calibration, tell)
    # A proposal is true where it leads to a caption that this image was given at first.
    partner, cells = trial.caption_pair, len(space.texts)
    true = (partner >= 0) & np.isin(image_rows * cells + shown[partner], image_rows * cells + given)
    moved, lost = np.searchsorted(asked, moved), np.searchsorted(asked, lost)
    weight, given_weight = (np.nan_to_num(one.caption_weight) for one in (trial, proposals))
    present = _present(given_weight[issues], weight[moved], weight[lost])
    home, astray, wrong = (trial.caption_weight[k] for k in (moved[true[moved]], moved[~true[moved]], lost))
    astray, wrong = astray[~np.isnan(astray)], wrong[~np.isnan(wrong)]
    levels, true_at = _by_weight(home, astray, wrong, present)
    return RematchTrial(
        moved=len(moved),
        proposed=(len(home) + len(astray)) / len(moved),
        true=len(home) / max(len(home) + len(astray), 1),
        by_mistake=len(wrong) / len(lost),
        present=present,
        weights=tuple(levels.tolist()),
        true_at=tuple(true_at.tolist()),
    )


def _units(image_rows: Rows, p_mismatch: Floats) -> tuple[NDArray[np.int64], bool]:
    """(U, c) matched pairs in random order, each row of one image, and whether its captions are moved together.

    The trial mixes up as the data is mixed up, since captions of an image help each other home: all of an image at
    once where a mismatched pair seldom has a matched neighbour, else as many as it usually misses, each to another
    place. Images with a suspicious pair stay out if there are others: some of their captions lie elsewhere, and to be
    led to these would be right without anybody knowing it.
    """
    rng = np.random.default_rng(0)
    order = rng.permutation(len(image_rows))
    order = order[np.argsort(image_rows[order], kind="stable")]
    starts = np.flatnonzero(np.append(True, np.diff(image_rows[order]) != 0))
    sizes = np.diff(np.append(starts, len(order)))
    issues = np.add.reduceat(p_mismatch[order] > SUSPECT, starts)
    mixed = (issues > 0) & (sizes > 1)
    together = bool(mixed.any() and issues[mixed].sum() / sizes[mixed].sum() > _TOGETHER)
    width = int(np.bincount(sizes).argmax())
    if not together:
        width = min(width, max(1, round(float(issues[mixed].mean())))) if mixed.any() else 1
    whole = starts[(issues == 0) & (sizes >= width)]
    if len(whole) < 2 * -(-_FEWEST // width):
        return rng.permutation(np.flatnonzero(p_mismatch <= SUSPECT))[:, None], False
    return order[rng.permutation(whole)[:, None] + np.arange(width)], together


def _present(given: Floats, moved: Floats, lost: Floats) -> float:
    """Of the mismatched pairs, the share whose right caption is in the set: what weight their proposals have tells.

    Weights of the proposals, 0 where there is none: for the mismatched pairs of the data, for those whose caption was
    moved, and for those whose caption was taken away. Where the last two are alike it tells nothing, and all captions
    are taken to be there; between is how far their distance stands out of twice its error.
    """
    if len(given) == 0:
        return 1.0
    apart = float(moved.mean() - lost.mean())
    error = sum(float(part.var()) / len(part) for part in (moved, lost))
    certainty = max(0.0, 1 - 4 * error / apart**2) if apart > 0 else 0.0
    share = float(np.clip((given.mean() - lost.mean()) / apart, 0.0, 1.0)) if certainty else 1.0
    return certainty * share + 1 - certainty


def _by_weight(home: Floats, astray: Floats, wrong: Floats, present: float) -> tuple[Floats, Floats]:
    """The share of true proposals at some levels of the weight, never falling with it.

    home, astray: weights of true and other proposals for moved pairs; wrong: of proposals where the caption was lost.
    """
    weight = np.concatenate([home, astray, wrong])
    if len(weight) == 0:
        return np.zeros(0), np.zeros(0)
    true = np.arange(len(weight)) < len(home)
    counts = np.where(np.arange(len(weight)) < len(home) + len(astray), present, 1 - present)
    edges = np.unique(np.quantile(weight, np.linspace(0, 1, max(1, len(weight) // _PER_LEVEL) + 1)[1:-1]))
    place = np.searchsorted(edges, weight, "right")  # equal weights are on one level
    every = (np.flatnonzero(place == level) for level in range(len(edges) + 1))
    parts = [part for part in every if counts[part].sum() > 0]
    levels = np.array([weight[part].mean() for part in parts])
    total = np.array([counts[part].sum() for part in parts])
    shares = np.array([counts[part][true[part]].sum() for part in parts]) / total
    return levels, never_falling(shares, total).clip(0.0, 1.0)


def _without_texts(space: Space, gone: Rows, instead: Rows) -> Space:
    """The space as if some texts were not there: others stand in their place."""
    stand_in = np.arange(len(space.texts))
    stand_in[gone] = instead
    there = replace(space, texts=space.texts[torch.from_numpy(stand_in)])
    if space.fine is None or space.shortlists is None:
        return there
    fine, ((scores, partners), by_text) = space.fine, space.shortlists

    def score(rows: Rows, cols: Rows, why: str) -> Scores:
        return fine(rows, stand_in[cols], why)

    hidden = torch.from_numpy(np.isin(partners.numpy(), gone))
    return replace(there, fine=score, shortlists=((scores.masked_fill(hidden, -torch.inf), partners), by_text))
