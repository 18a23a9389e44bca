"""judge: a space and a table in, Verdicts out. The one place where evidence, rematching and damage come together."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from torch import Tensor

from mispair.auditing.calibration import Calibration, calibrate, refuse_few, refuse_few_comparable
from mispair.auditing.damage import (
    find_crowded_images,
    find_empty_captions,
    find_repeated_captions,
    find_twins,
    shared_captions,
)
from mispair.auditing.facts import EMPTY_CAPTIONS, KINDS, REPEATED, TWINS, Damage, Facts, Origin
from mispair.auditing.proposal_trial import try_rematching
from mispair.auditing.proposals import Proposals, propose
from mispair.auditing.shifts import ENDS, Shift, find_shift
from mispair.auditing.similarity import Rows
from mispair.auditing.space import Cells, Scores, Space
from mispair.auditing.verdict_rows import PairTexts, look_order, verdict_rows
from mispair.auditing.verdicts import Verdicts
from mispair.counted import counted
from mispair.data.pair_table import PairTable
from mispair.data.source import FEWEST
from mispair.errors import InputError
from mispair.progress import Tell, silent

Floats = NDArray[np.float64]

_FEWEST_LEFT = 100  # pairs beside a shifted stretch, to judge it apart from them


@dataclass(frozen=True)
class Evidence:
    """What is known of N given and Z re-paired pairs: by the space itself, or by networks that have not seen them."""

    cells: Cells  # of the given pairs, each (N,)
    given: Floats  # (N, F) evidence
    repaired: Floats  # (Z, F)
    image_rows: Rows  # (Z,) of the re-paired ones
    text_rows: Rows  # (Z,)


def judge(
    space: Space,
    table: PairTable,
    *,
    held: Evidence | None = None,
    more_evidence: Callable[[Rows, Rows, Floats], Floats] | None = None,
    held_out: str = "the model's own scores",
    learned: bool = False,
    features: Tensor | None = None,
    other_features: Mapping[str, Tensor] | None = None,
    run: str | None = None,
    data: Origin | None = None,
    tell: Tell = silent,
) -> Verdicts:
    """Judge every pair of `table`.

    Args:
        held: what networks that have not seen the pairs say of them (cross-fitting): probability, score and ranks of
            every row are theirs then. What is proposed instead comes from `space` either way.
        more_evidence: of cells (image rows, text rows) -> (C, F'), beside score, ranks and rivals. What it takes from
            other pairs it may weigh by (N,), 0 to 1: how far each can be trusted by score, ranks and rivals alone.
        learned: the space has learned from these very pairs. Mismatched ones it knows by heart look right to it, so
            that the rate is bounded from below only.
        features: (I, d) of the images, to look for twins among them and in `other_features` of other splits.
    """
    started = time.monotonic()
    refuse_few(len(table))
    count = len(table)
    _refuse_alike(space)
    captions = captions_of(table)
    said = captions if table.captions is not None else table.text_rows.tolist()
    apart = shared_captions(said, table.image_rows, space.images)  # (N,) probability of pairs that are judged apart
    alone = apart == 0
    refuse_few_comparable(alone)
    repaired = pair_at_random(table.image_rows[alone], table.text_rows[alone])
    near_by = Space(space.images, space.texts)
    shift = find_shift(lambda a, b: near_by.score(table.image_rows[a], table.text_rows[b]), table.image_rows)
    rows, cols = np.concatenate([table.image_rows, repaired[0]]), np.concatenate([table.text_rows, repaired[1]])
    cells = space.measure(rows, cols, tell)
    _refuse_unscored(cells.score[:count])
    own = cells.evidence(len(space.images), len(space.texts))
    known = held or Evidence(cells.take(slice(count)), own[:count], own[count:], *repaired)
    low = high = apart
    if shift is not None:
        apart, low, high = _with_shift(apart, shift, shift.mismatched(table.image_rows, said), known.cells)
        alone = apart == 0
    near = calibrate(own[:count][alone], own[count:], table.image_rows[alone])
    calibration = near if held is None else calibrate(held.given[alone], held.repaired, table.image_rows[alone])
    if more_evidence is not None:
        calibration = _with_more(calibration, known, more_evidence, table, apart)
    p = apart.copy()
    p[alone] = calibration.p_mismatch
    proposals = propose(space, table.image_rows, table.text_rows, p, cells.score[:count], near, tell)
    trial = None
    if (proposals.caption_pair >= 0).any():
        trial = try_rematching(space, table.image_rows, table.text_rows, p, proposals, near, tell)
    names = image_names(table, len(space.images))
    shifted = None if shift is None else shift.describe(count)
    damage = [shifted, *_other_damage(table, captions, names, p, features, other_features or {})]
    unknown = {REPEATED: table.captions is None, EMPTY_CAPTIONS: table.captions is None, TWINS: features is None}
    estimate = calibration.estimate
    facts = Facts(
        pairs=count,
        rate=_overall(estimate.rate, apart),
        rate_low=_overall(estimate.low, low),
        rate_high=1.0 if learned else _overall(estimate.high, high),
        conclusive=estimate.conclusive and not learned,
        separation=estimate.separation,
        issues=int((p > 0.5).sum()),
        held_out=held_out,
        learned=learned,
        run=run,
        data=data or {},
        mixture={"evidence": "suspicion: score, ranks and rivals, as they tell given from re-paired pairs"}
        | calibration.histogram(),
        damage=tuple(kind for kind in damage if kind is not None),
        not_sought=tuple(kind for kind in KINDS if unknown.get(kind)),
        rematch=trial,
    )
    verdicts = Verdicts(_rows(table, names, captions, p, known.cells, proposals), facts)
    return replace(verdicts, facts=replace(facts, seconds=round(time.monotonic() - started, 3)))


def _refuse_alike(space: Space) -> None:
    for side, vectors in (("images", space.images), ("texts", space.texts)):
        if bool((vectors == vectors[0]).all()):
            raise InputError(f"all {len(vectors):,} {side} are the same to the model, so nothing tells the pairs apart")


def _refuse_unscored(scores: Scores) -> None:
    wrong = np.flatnonzero(~np.isfinite(scores))
    if len(wrong):
        raise InputError(
            f"{counted(len(wrong), 'pair has', 'pairs have')} no finite score (first: pair {wrong[0]:,}): features hold"
            " NaN or infinity; mispair check says where"
        )


def _with_more(
    before: Calibration,
    known: Evidence,
    more_evidence: Callable[[Rows, Rows, Floats], Floats],
    table: PairTable,
    apart: Floats,
) -> Calibration:
    """Calibrated anew with more evidence beside what is known; it trusts pairs as far as they were trusted `before`."""
    alone = apart == 0
    trust = 1 - apart
    trust[alone] = 1 - before.p_mismatch
    rows = np.concatenate([table.image_rows, known.image_rows])
    cols = np.concatenate([table.text_rows, known.text_rows])
    more = np.column_stack([np.concatenate([known.given, known.repaired]), more_evidence(rows, cols, trust)])
    return calibrate(more[: len(table)][alone], more[len(table) :], table.image_rows[alone])


def _other_damage(
    table: PairTable,
    captions: list[str],
    names: list[str],
    p: Floats,
    features: Tensor | None,
    other_features: Mapping[str, Tensor],
) -> list[Damage | None]:
    """All kinds of damage that can be looked for here, but shifts."""
    damage = [find_crowded_images(table.image_rows, names)]
    if table.captions is not None:
        damage = [find_repeated_captions(captions, table.image_rows, p), find_empty_captions(captions), *damage]
    if features is not None:
        damage.append(find_twins(features, table.image_rows, names, other_features))
    return damage


def _with_shift(apart: Floats, shift: Shift, shifted: Floats, shown: Cells) -> tuple[Floats, Floats, Floats]:
    """What is judged apart, with the pairs of a shifted stretch where enough others are left to compare with; and the
    least and the most of it.

    A pair that is first both ways stays with the others: nothing in its row would explain why it is called wrong.
    """
    first = (shown.caption_rank == 1) & (shown.image_rank == 1)
    mostly = np.where(first, 0.0, shifted)
    both = np.maximum(apart, mostly)
    if (both == 0).sum() < _FEWEST_LEFT:
        return apart, apart, apart
    most = np.where(shifted > apart, 1.0, both)
    most[max(0, shift.start - ENDS) : shift.start] = most[shift.stop : shift.stop + ENDS] = 1.0
    return both, np.where(mostly > apart, 2 * mostly - 1, both), most


def _overall(rate: float, apart: Floats) -> float:
    """The rate of all pairs, from that of the pairs that are not judged apart."""
    return float(np.where(apart == 0, rate, apart).mean())


def pair_at_random(image_rows: Rows, text_rows: Rows, seed: int = 0) -> tuple[Rows, Rows]:
    """Images and texts of the pairs, paired anew at random; pairs that are given stay out."""
    count = len(image_rows)
    rng = np.random.default_rng(seed)
    size = int(np.clip(2 * count, 5_000, 40_000))
    images, texts = image_rows[rng.integers(count, size=size)], text_rows[rng.integers(count, size=size)]
    width = int(text_rows.max()) + 1
    new = ~np.isin(images * width + texts, image_rows * width + text_rows)
    if new.sum() < FEWEST:
        raise InputError("every image is paired with every text: there is nothing to compare the pairs with")
    return images[new], texts[new]


def captions_of(table: PairTable) -> list[str]:
    """(N,) the caption each pair shows; empty where the second side has no words."""
    if table.captions is None:
        return [""] * len(table)
    return [table.captions[row] for row in table.text_rows.tolist()]


def image_names(table: PairTable, count: int) -> list[str]:
    """A name for each of `count` images: its id, or its row where the data has no ids."""
    return list(table.image_ids) if table.image_ids is not None else [str(row) for row in range(count)]


def _rows(
    table: PairTable, names: list[str], captions: list[str], p: Floats, cells: Cells, proposals: Proposals
) -> pa.Table:
    ids, images, texts = table.text_ids, table.image_rows, table.text_rows
    shown = PairTexts(
        lambda pairs: pa.array([str(row) if ids is None else ids[texts[row]] for row in pairs.tolist()]),
        lambda pairs: pa.array([names[row] for row in images[pairs].tolist()]),
        lambda pairs: pa.array([captions[row] for row in pairs.tolist()]),
    )
    return verdict_rows(
        np.arange(len(table)), shown, p, cells.score, cells.caption_rank, cells.image_rank, proposals, look_order(p)
    )
