"""The pairs as they were judged, by an audit or by the run itself: the table of the worst and the gallery."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mispair.auditing.fixing.expectation import share_of_fitting
from mispair.auditing.verdicts import Verdicts
from mispair.data import PairData
from mispair.report.content import Card, Gallery, PairRow, Word, WorstPairs
from mispair.workflows.report.find_pictures import PicturesById
from mispair.workflows.report.sample_proposals import propose_from_sample
from mispair.workflows.report.training import RunRecord, split_columns
from mispair.workflows.report.words import HOW, judge_words
from mispair.workflows.trained_run import TrainedRun

CARDS = 24
_PICTURED, _PICTURE_BYTES = 200, 600_000  # rows of the table that have a picture, and what these may weigh
_CARD_BYTES = 700_000  # of all pictures on cards; those beyond are small
_CARD_SIDE, _ROW_SIDE = 420, 144  # pixels, for screens with two pixels per point
_LONG = 2_000  # characters: longer captions are not judged word by word


@dataclass(frozen=True)
class JudgedPairs:
    """One row per pair, in the order of the data; the columns of `audit.parquet` that are known."""

    pairs: list[PairRow]
    proposals: dict[int, int]  # pair -> the pair that holds its proposed caption
    other_images: dict[int, str]  # pair -> image id its caption fits better
    how: str  # where the proposals come from
    proposal_true: dict[int, bool]

    @property
    def captions(self) -> list[str]:
        return [pair.caption for pair in self.pairs]


def judged_by_audit(audit: Verdicts) -> JudgedPairs:
    """The pairs of an audit as the page shows them, in the order of the data."""
    columns: dict[str, list[Any]] = {name: audit.table[name].to_pylist() for name in audit.table.column_names}
    ids = dict(zip(columns["pair"], columns["pair_id"], strict=True))
    truth = columns.get("truth_mismatched", [None] * len(audit))
    right = columns.get("proposal_true", [None] * len(audit))
    pairs = [
        PairRow(
            pair_id=columns["pair_id"][k],
            image_id=columns["image_id"][k],
            caption=columns["caption"][k],
            p_mismatch=columns["p_mismatch"][k],
            flagged=columns["is_mismatch_issue"][k],
            look=columns["look"][k],
            score=columns["score"][k],
            caption_rank=columns["caption_rank"][k],
            image_rank=columns["image_rank"][k],
            proposed_caption=columns["proposed_caption"][k],
            proposed_weight=columns["proposed_caption_weight"][k],
            proposed_gain=columns["proposed_caption_gain"][k],
            proposed_image=columns["proposed_image_id"][k],
            swap_with=ids.get(columns["swap_with"][k]),
            truth=truth[k],
        )
        for k in range(len(audit))
    ]
    held = columns["proposed_caption_pair"]
    scored = "" if audit.facts.run is None else ", scored again by the full model"
    return JudgedPairs(
        pairs,
        {k: int(held[k]) for k in range(len(audit)) if held[k] is not None},
        {k: name for k, name in enumerate(columns["proposed_image_id"]) if name is not None},
        f"They come from the whole set: a shortlist{scored}, then a partial transport that may leave an image"
        f" unmatched. {share_of_fitting(audit)}",
        {k: bool(value) for k, value in enumerate(right) if value is not None},
    )


def judged_by_run(run: RunRecord, loaded: TrainedRun | None, data: PairData) -> JudgedPairs | None:
    """What the last split of the run says; None where its method judges no pairs."""
    if not run.splits:
        return None
    columns = split_columns(run, max(run.splits))
    if "posterior" not in columns or "mismatched" not in columns or len(columns["posterior"]) != len(data):
        return None
    table = data.table
    truth = table.truth
    pairs = [
        PairRow(
            pair_id=str(k) if table.text_ids is None else table.text_ids[table.text_rows[k]],
            image_id=_image_id(data, int(table.image_rows[k])),
            caption="" if table.captions is None else table.captions[table.text_rows[k]],
            p_mismatch=float(columns["posterior"][k]),
            flagged=bool(columns["mismatched"][k]),
            truth=None if truth is None else bool(truth.mismatched[k]),
        )
        for k in range(len(data))
    ]
    flagged = np.flatnonzero(columns["mismatched"])
    proposals = propose_from_sample(loaded, data, flagged) if loaded is not None and len(flagged) > 1 else []
    for one in proposals:
        pairs[one.pair] = replace(
            pairs[one.pair],
            proposed_caption=pairs[one.proposed].caption,
            proposed_weight=one.weight,
            proposed_gain=one.gain,
        )
    return JudgedPairs(
        pairs,
        {one.pair: one.proposed for one in proposals},
        {},
        "They were made for this page by one partial transport over a sample of the pairs called mismatched; mispair "
        "audit looks at the whole set.",
        {},
    )


def worst_first(judged: JudgedPairs) -> list[int]:
    """The pairs by the probability that they do not match."""
    return sorted(range(len(judged.pairs)), key=lambda k: (-judged.pairs[k].p_mismatch, judged.pairs[k].look or 0, k))


def chosen_cards(judged: JudgedPairs, most: int = CARDS) -> list[int]:
    """Some of the pairs with a proposal, evenly spaced from the surest to the least sure, each image once."""
    candidates = _with_proposal(judged)
    candidates.sort(key=lambda k: (-(judged.pairs[k].proposed_weight or 0), -(judged.pairs[k].proposed_gain or 0), k))
    first: dict[str, int] = {}
    for k in candidates:
        first.setdefault(judged.pairs[k].image_id, k)
    unique = list(first.values())
    places = np.unique(np.linspace(0, len(unique) - 1, min(most, len(unique))).round().astype(int)) if unique else ()
    return [unique[at] for at in places]


def _with_proposal(judged: JudgedPairs) -> list[int]:
    return [k for k in judged.proposals if judged.pairs[k].flagged]


def images_shown(judged: JudgedPairs) -> list[str]:
    """The ids of the images that the page shows a picture of, where it can be had."""
    cards = chosen_cards(judged)
    elsewhere = [judged.other_images[k] for k in cards if k in judged.other_images]
    return [judged.pairs[k].image_id for k in (*cards, *worst_first(judged)[:_PICTURED])] + elsewhere


def worst_pairs(judged: JudgedPairs, pictures: PicturesById | None, most: int, source: str) -> WorstPairs:
    """The `most` worst pairs for the page's table, with pictures for the first of them."""
    rows = [judged.pairs[k] for k in worst_first(judged)[:most]]
    shown: dict[str, str] = {}
    if pictures is not None and pictures.present:
        size = 0
        for row in rows[:_PICTURED]:
            shown[row.image_id] = pictures.get(row.image_id, _ROW_SIDE) or ""
            size += len(shown[row.image_id])
            if size > _PICTURE_BYTES:
                break
    return WorstPairs(rows, len(judged.pairs), shown, source)


def gallery(
    judged: JudgedPairs, loaded: TrainedRun | None, data: PairData | None, pictures: PicturesById | None
) -> Gallery | None:
    """The cards of some of the proposals."""
    chosen = chosen_cards(judged)
    if not chosen:
        return None
    can_judge = loaded is not None and data is not None and loaded.reads_words
    cards: list[Card] = []
    for k in chosen:
        busy = sum(len(card.picture or "") for card in cards) > _CARD_BYTES
        cards.append(_card(judged, k, loaded if can_judge else None, data, pictures, _ROW_SIDE if busy else _CARD_SIDE))
    return Gallery(tuple(cards), len(_with_proposal(judged)), judged.how, HOW if can_judge else None)


def _card(
    judged: JudgedPairs,
    k: int,
    loaded: TrainedRun | None,
    data: PairData | None,
    pictures: PicturesById | None,
    side: int,
) -> Card:
    pair = judged.pairs[k]
    captions = [pair.caption, pair.proposed_caption or ""]
    marked: Sequence[Sequence[Word]] = [[Word(caption)] for caption in captions]
    if loaded is not None and data is not None and all(len(caption) <= _LONG for caption in captions):
        marked = judge_words(loaded, data, int(data.table.image_rows[k]), captions)
    other = judged.other_images.get(k)
    return Card(
        pair_id=pair.pair_id,
        image_id=pair.image_id,
        picture=None if pictures is None else pictures.get(pair.image_id, side),
        given=marked[0],
        proposed=marked[1],
        weight=pair.proposed_weight,
        gain=pair.proposed_gain,
        p_mismatch=pair.p_mismatch,
        swap_with=pair.swap_with,
        other_picture=None if pictures is None or other is None else pictures.get(other, _ROW_SIDE),
        other_id=other,
        true=judged.proposal_true.get(k),
    )


def _image_id(data: PairData, row: int) -> str:
    return str(row) if data.table.image_ids is None else data.table.image_ids[row]
