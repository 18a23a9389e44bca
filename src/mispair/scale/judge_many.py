"""Many pairs judged in one process: the passes of the shards one after the other, and what makes Verdicts of them.

Letters: N pairs, L landmarks.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray

from mispair.auditing.damage import find_crowded_images, find_empty_captions, find_repeated_captions
from mispair.auditing.facts import EMPTY_CAPTIONS, REPEATED, TWINS, Damage, Facts, Origin
from mispair.auditing.proposals import Proposals
from mispair.auditing.shifts import find_shift
from mispair.auditing.verdict_rows import PairTexts, look_order, verdict_rows
from mispair.auditing.verdicts import Verdicts
from mispair.progress import Tell, silent
from mispair.scale.calibration import Calibrations, calibrate_counts
from mispair.scale.frame import Frame, make_frame
from mispair.scale.rematch import HERE, Where, propose_among_many
from mispair.scale.statistics import gather
from mispair.scale.vectors import PairVectors, Rows

Floats = NDArray[np.float64]

_CHUNK = 1 << 17  # rows of a table made at a time


@dataclass(frozen=True, eq=False)
class Judged:
    """What the second pass says of all pairs, each (N,)."""

    p_mismatch: Floats
    score: NDArray[np.float32]
    caption_above: NDArray[np.int32]  # landmarks
    image_above: NDArray[np.int32]


@dataclass(frozen=True)
class AuditContext:
    """What to say of the data and of the judge in the facts."""

    data: Origin
    held_out: str = "nothing was trained, so nothing was learned by heart"
    learned: bool = False
    run: str | None = None


def judge_many(data: PairVectors, about: AuditContext, tell: Tell = silent) -> Verdicts:
    """Verdicts on every pair, both passes in this process; memory grows by some hundred bytes per pair."""
    started = time.monotonic()
    frame = make_frame(data)
    statistics = gather(data, frame, tell)
    calibrations = calibrate_counts(statistics, frame.full, frame.near)
    p = calibrations.full.p_mismatch(statistics.suspicion, statistics.crowd)
    judged = Judged(p, statistics.score, statistics.caption_above, statistics.image_above)
    del statistics
    verdicts = finish(data, frame, calibrations, judged, about, tell)
    return replace(verdicts, facts=replace(verdicts.facts, seconds=round(time.monotonic() - started, 3)))


def finish(
    data: PairVectors,
    frame: Frame,
    calibrations: Calibrations,
    judged: Judged,
    about: AuditContext,
    tell: Tell,
    where: Where = HERE,
) -> Verdicts:
    """Proposals, kinds of damage and the facts, once every pair is judged; `where` says who seeks the proposals."""
    p = judged.p_mismatch
    proposals = propose_among_many(data, frame, p, judged.score, calibrations.near.convincing, tell, where)
    calibration = calibrations.full
    estimate, facts_of = calibration.estimate, calibration.overall
    facts = Facts(
        pairs=len(data),
        rate=facts_of(estimate.rate),
        rate_low=facts_of(estimate.low),
        rate_high=1.0 if about.learned else facts_of(estimate.high),
        conclusive=estimate.conclusive and not about.learned,
        separation=estimate.separation,
        issues=int((p > 0.5).sum()),
        held_out=about.held_out,
        learned=about.learned,
        run=about.run,
        data=about.data,
        mixture={"evidence": "suspicion: score, ranks and neighbours among landmarks"} | calibration.histogram(),
        damage=tuple(_damage(data, frame, p)),
        not_sought=_not_sought(data),
    )
    return Verdicts(pa.concat_tables(_tables(data, frame, judged, proposals)), facts)


def _damage(data: PairVectors, frame: Frame, p: Floats) -> Iterator[Damage]:
    rows = data.image_rows(np.arange(len(data)))
    shift = find_shift(partial(_scores, data, frame), rows)
    kinds: list[Damage | None] = [None if shift is None else shift.describe(len(data))]
    if data.captions is not None:
        kinds += [find_repeated_captions(data.captions, rows, p), find_empty_captions(data.captions)]
    if data.image_of is not None:
        kinds.append(find_crowded_images(rows, _Names(data.image_ids)))
    return (kind for kind in kinds if kind is not None)


def _not_sought(data: PairVectors) -> tuple[str, ...]:
    """Twins would be sought by comparing every two images; without captions nobody knows what they say."""
    return (TWINS,) if data.captions is not None else (REPEATED, EMPTY_CAPTIONS, TWINS)


def _scores(data: PairVectors, frame: Frame, images: Rows, texts: Rows) -> NDArray[np.float32]:
    """Of the images of some pairs (b,) with the texts of others (b,)."""
    found = np.empty(len(images), np.float32)
    for start in range(0, len(images), _CHUNK):
        here = slice(start, start + _CHUNK)
        a, b = frame.unit(data.image_vectors(images[here]), 0), frame.unit(data.text_vectors(texts[here]), 1)
        found[here] = torch.linalg.vecdot(a, b).numpy()
    return found


class _Names(Sequence[str]):
    """What each image is called; its row where nobody named it."""

    def __init__(self, ids: Sequence[str] | None) -> None:
        self._ids = ids

    def __getitem__(self, row: Any) -> Any:
        return str(row) if self._ids is None else self._ids[row]

    def __len__(self) -> int:
        return 0 if self._ids is None else len(self._ids)


def _tables(data: PairVectors, frame: Frame, judged: Judged, proposals: Proposals) -> Iterator[pa.Table]:
    """The rows of the audit, some at a time."""
    p, look = judged.p_mismatch, look_order(judged.p_mismatch)
    scale = (len(data) - 1) / max(len(frame.landmarks) - 1, 1)  # a rank among the landmarks, as one among all
    shown = PairTexts(
        lambda pairs: _texts(data.pair_ids, pairs),
        lambda pairs: _texts(data.image_ids, data.image_rows(pairs)),
        lambda pairs: _captions(data, pairs),
    )
    for start in range(0, len(data), _CHUNK):
        here = slice(start, min(start + _CHUNK, len(data)))
        caption_rank, image_rank = (
            1 + np.rint(above[here] * scale).astype(np.int64) for above in (judged.caption_above, judged.image_above)
        )
        pairs, score = np.arange(here.start, here.stop), judged.score[here]
        yield verdict_rows(pairs, shown, p, score, caption_rank, image_rank, proposals, look)


def _texts(names: Sequence[str] | None, rows: NDArray[np.int64]) -> pa.Array:
    return pc.cast(pa.array(rows), pa.string()) if names is None else pa.array([names[row] for row in rows.tolist()])


def _captions(data: PairVectors, rows: NDArray[np.int64]) -> pa.Array:
    if data.captions is None:
        return pa.array([""]).take(pa.array(np.zeros(len(rows), np.int64)))
    return _texts(data.captions, rows)
