"""Has a run learned from these pairs? They are known by what they hold, whatever their files are called.

A table of which some rows were dropped or mended since is not the data of the run any more, and yet most of its pairs
are those that the run may know by heart.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mispair.data import PairData
from mispair.data.features import FeatureStore
from mispair.data.pair_table import PairTable
from mispair.data.picture_store import Pictures
from mispair.data.splits import open_pairs
from mispair.errors import InputError
from mispair.pictures.decode import Broken
from mispair.workflows.trained_run import TrainedRun

FEW = 0.05  # share of learned pairs up to which the rate is not disturbed
_LOOKED_UP = 2_000  # pairs of the data, at even distances


def share_learned(run: TrainedRun, data: PairData) -> float | None:
    """The share of the pairs of `data` that `run` was trained on; None where the run's own data is no longer there."""
    try:
        source, own, _ = open_pairs(run.config.data, "train")
    except InputError:
        return None
    asked = np.unique(np.linspace(0, len(data) - 1, min(_LOOKED_UP, len(data))).astype(np.int64))
    texts = data.texts if isinstance(data.texts, FeatureStore) else None
    wanted = _texts(data.table, asked, texts)
    named = set(wanted)
    known = _texts(own, own.pair_ids, source.text_features)
    same = np.array([k for k, text in enumerate(known) if text in named], np.int64)
    if not len(same):
        return 0.0
    theirs = data.images if isinstance(data.images, FeatureStore) else data.images.pictures
    ours = source.images if isinstance(theirs, FeatureStore) else source.pictures
    held = theirs if ours is not None else None
    shown = _images(data.table, asked, held)
    learned = set(zip((known[k] for k in same), _images(own, same, ours), strict=True))
    return sum(pair in learned for pair in zip(wanted, shown, strict=True)) / len(asked)


def _texts(table: PairTable, pairs: NDArray[np.int64], store: FeatureStore | None) -> Sequence[str]:
    """The text of each pair: its words where it has some."""
    rows = table.text_rows[pairs]
    if table.captions is not None:
        return [table.captions[row] for row in rows]
    return _digests(store, rows)


def _images(table: PairTable, pairs: NDArray[np.int64], store: FeatureStore | Pictures | None) -> Sequence[str]:
    """The image of each pair: its features or its file, or where there are none to compare the name of its file."""
    rows = table.image_rows[pairs]
    if store is None:
        return [os.path.basename(table.image_ids[row]) if table.image_ids else str(row) for row in rows]
    return _digests(store, rows)


def _digests(store: FeatureStore | Pictures | None, rows: NDArray[np.int64]) -> Sequence[str]:
    assert store is not None, "texts are words or features"
    of_row = {
        row: hashlib.blake2b(_content(store, row), digest_size=16).hexdigest() for row in np.unique(rows).tolist()
    }
    return [of_row[row] for row in rows.tolist()]


def _content(store: FeatureStore | Pictures, row: int) -> bytes:
    if isinstance(store, FeatureStore):
        return store.take(np.array([row]))[0].tobytes()
    read = store.read(row)
    return read.reason.encode() if isinstance(read, Broken) else read
