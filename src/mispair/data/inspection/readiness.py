"""Whether data can be learned from at all: what would make a training pointless is refused before its first step."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mispair.counted import counted, either
from mispair.data.features import FeatureStore
from mispair.data.identity import examine_features
from mispair.data.inspection.agreement import check_agreement
from mispair.data.pair_data import PairData
from mispair.data.vocabulary import UNK, TokenStore
from mispair.errors import InputError

_ROWS = 1024  # compared at a time; nearly always the first two differ
MANY_UNKNOWN = 0.2  # share of words without an id of their own that a person should know of


def check_readiness(*splits: PairData) -> tuple[str, ...]:
    """Refuse data that cannot be learned from; return what a person should know, one sentence each.

    Args:
        splits: the train split first, then those it is judged on, all in the words of train.

    Raises:
        InputError: features with NaN or infinity (file and rows named), features or captions that are all alike,
            splits whose features have different widths.
    """
    _refuse_empty(splits[0])  # first: vectors of equal captions are equal too, and the captions are to blame
    for side in ("images", "texts"):
        stores = {data.split: getattr(data, side) for data in splits}
        stores = {split: store for split, store in stores.items() if isinstance(store, FeatureStore)}
        check_agreement(stores, splits[0].sides[side == "texts"])
        for split, store in stores.items():
            _refuse_broken(store, split)
        if splits[0].split in stores:
            _refuse_alike(stores[splits[0].split], splits[0].split)
    notes = [note for data in splits for note in data.notes]
    for data in splits:
        notes += _about_words(data)
    return tuple(dict.fromkeys(notes))


def _refuse_broken(store: FeatureStore, split: str) -> None:
    examined = examine_features(store)
    if examined.broken_count:
        rows = ", ".join(map(str, examined.broken[:5])) + (" ..." if examined.broken_count > 5 else "")
        file = store.path if store.path is not None else f"the features of {split}"
        raise InputError(
            f"{file}: {counted(examined.broken_count, 'row')} ({rows}) {either(examined.broken_count, 'holds', 'hold')}"
            " NaN or infinity; expected numbers, so extract them again or leave these images out"
        )


def _refuse_alike(store: FeatureStore, split: str) -> None:
    """One row for all images, as a failed extraction leaves it: nothing can be told apart."""
    first = None
    for block in store.blocks(_ROWS):
        first = block[0] if first is None else first
        if len(store) < 2 or (block != first).any():
            return
    file = store.path if store.path is not None else f"the features of {split}"
    raise InputError(
        f"{file}: all {len(store):,} rows of {split} are alike; expected features that tell them apart, so extract them"
        " again"
    )


def _refuse_empty(data: PairData) -> None:
    if data.table.captions is not None:
        captions = (data.table.captions[row] for row in data.table.text_rows.tolist())
        refuse_captions_alike(captions, f"{data.name}: all {len(data):,} captions of {data.split}")


def refuse_captions_alike(captions: Iterable[str], all_captions: str) -> None:
    """Raise InputError where two captions or more are one and the same; `all_captions` is how the sentence begins."""
    rest = (caption.strip().lower() for caption in captions)
    first = next(rest, "")
    second = next(rest, None)
    if second is None or second != first or any(caption != first for caption in rest):
        return
    how = f"alike ({first[:40]!r})" if first else "empty"
    raise InputError(
        f"{all_captions} are {how}; expected captions that tell images apart, so check which column is the caption"
        " (--caption-column)"
    )


def _about_words(data: PairData) -> list[str]:
    if not isinstance(data.texts, TokenStore) or data.vocabulary is None or data.table.captions is None:
        return []
    lengths = data.texts.lengths - 2  # without <start> and <end>
    notes = []
    empty = int((lengths == 0).sum())
    if empty:
        notes.append(f"{empty:,} of {len(lengths):,} captions of {data.split} {either(empty, 'is', 'are')} empty")
    words = int(lengths.sum())
    unknown = int(np.count_nonzero(data.texts.flat == UNK))
    if words and unknown > MANY_UNKNOWN * words:
        notes.append(
            f"{unknown / words:.0%} of the words of {data.split} have no id of their own (rarer than data.min_count in"
            " train) and are all read as one unknown word"
        )
    return notes
