"""quick_audit: judge pairs of embeddings as they are. Similarity, agreement with neighbours, a regression of others."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mispair.auditing.calibration import refuse_few
from mispair.auditing.damage import MOST_TWINS
from mispair.auditing.embeddings import GivenPairs, arrays_as_data, centre, equal_rows, fold_by_id, unit_vectors
from mispair.auditing.facts import Origin
from mispair.auditing.fixing.earlier import earlier_fix
from mispair.auditing.held_out_evidence import said_by_others
from mispair.auditing.judge import judge
from mispair.auditing.neighbours import Neighbours
from mispair.auditing.similarity import Rows
from mispair.auditing.space import Space
from mispair.auditing.verdicts import Verdicts
from mispair.data.config import DataConfig
from mispair.data.features import FeatureStore, open_features
from mispair.data.identity import content_hash
from mispair.data.pair_table import PairTable
from mispair.data.readers.dispatch import given_pairs, open_source
from mispair.errors import InputError
from mispair.progress import Tell, silent


def quick_audit(pairs: GivenPairs, *, data: Origin | None = None, tell: Tell = silent) -> Verdicts:
    """Judge pairs whose embeddings somebody has already, in memory.

    Args:
        data: what to say of the data in the facts.

    Returns:
        One verdict per row.

    Raises InputError where the rows are not as many on both sides, not finite, or of different widths.
    """
    a = unit_vectors("image_embeddings", pairs.column("image_embeddings"))
    b = unit_vectors("text_embeddings", pairs.column("text_embeddings"))
    if len(a) != len(b):
        raise InputError(
            f"there are {len(a):,} image embeddings and {len(b):,} text embeddings; expected as many, row k of one with"
            " row k of the other"
        )
    _refuse_widths(a, b)
    ids, captions = pairs.shown("image_ids", len(a)), pairs.shown("captions", len(a))
    rows = image_of = np.arange(len(a))
    named = equal_rows(a) if ids is None else ids
    if named is not None:
        a, image_of, ids = fold_by_id(a, named)
    return _judge(a, b, PairTable(image_of, rows, captions, ids), data, tell)


def quick_audit_files(
    first: str | os.PathLike[str],
    second: str | os.PathLike[str],
    *,
    data: DataConfig | None = None,
    seen: str | os.PathLike[str] | None = None,
    tell: Tell = silent,
) -> Verdicts:
    """`quick_audit` of two .npy files.

    Args:
        first, second: embeddings of the images and of the texts. The second may have several rows for each of the
            first; with a table, the first has one row per row of the table or per image, the second one per row.
        data: a table that names the images and holds the captions; what `mispair fix` then rewrites.
        seen: more about the images of `first`, row by row (.npy), in a space of their own: which of them are alike.
    """
    config, origin = arrays_as_data(first, second, data)
    source = open_source(config, "all")
    sides = []
    for path, store in zip((first, second), (source.images, source.text_features), strict=True):
        assert store is not None
        path = os.path.abspath(path)
        if store.regions != 1:
            raise InputError(
                f"{path} has {store.regions} vectors per row; expected embeddings, one per row: (rows, width)"
            )
        sides.append(unit_vectors(path, _rows(store)))
    judged = source if data is None else open_source(origin, "all")
    kind = "arrays" if data is None else os.path.splitext(origin.path)[1].lower().lstrip(".")
    about: Origin = {"path": origin.path, "split": "all", "format": kind, "hash": content_hash(judged)}
    about |= {"noise_hash": None, "config": origin.model_dump(mode="json"), "mended": earlier_fix(origin.path)}
    a, b = sides
    _refuse_widths(a, b)
    others = None
    if seen is not None:
        assert source.images is not None
        store = open_features(seen, "more about the images")
        if len(store.array) != len(source.images.array):
            raise InputError(
                f"{seen} has {len(store.array):,} rows and {first} {len(source.images.array):,}; expected one for each"
                " image"
            )
        others = unit_vectors(os.fspath(seen), _rows(replace(store, rows=source.images.rows)))
    return _judge(a, b, given_pairs(source), about, tell, others)


def _rows(store: FeatureStore) -> np.ndarray[Any, Any]:
    """(rows, width) as they lie there; a subset is taken from the map."""
    array = store.array.reshape(len(store.array), -1)
    return array if store.rows is None else array[store.rows]


def _judge(
    a: Tensor, b: Tensor, table: PairTable, data: Origin | None, tell: Tell, seen: Tensor | None = None
) -> Verdicts:
    """Images (I, d) and texts (M, d) of one space; which images are alike by `seen` (I, F) where there is more."""
    refuse_few(len(table))  # before: one row is the same as all others
    a, b = centre(a, "image embeddings"), centre(b, "text embeddings")
    alike = a if seen is None else centre(seen, "image features")
    neighbours = Neighbours(
        alike, b, table.image_rows, table.text_rows, lambda done, total: tell("finding neighbours", done, total)
    )
    others = said_by_others(alike, b[torch.from_numpy(table.text_rows)], table)

    def what_others_say(rows: Rows, cols: Rows, trust: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.column_stack([neighbours.disagreement(rows, cols), others(rows, cols, trust)])

    return judge(
        Space(a, b),
        table,
        more_evidence=what_others_say,
        held_out="nothing was trained, so nothing was learned by heart",
        features=alike if len(a) <= MOST_TWINS else None,
        data=data,
        tell=tell,
    )


def _refuse_widths(a: Tensor, b: Tensor) -> None:
    if a.shape[1] != b.shape[1]:
        raise InputError(
            f"image embeddings have width {a.shape[1]} and text embeddings {b.shape[1]}; expected one space for both,"
            " so take both from one model such as CLIP, of what mispair embed wrote joint.npy and texts.npy, or train"
            " one: mispair audit DATA --train"
        )
