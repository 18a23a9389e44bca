"""Judge embeddings as they are: in memory where they are few, in the passes of `mispair.scale` where they are many."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from torch import Tensor

from mispair.audit import quick
from mispair.audit.embeddings import as_array, as_texts, pick_column
from mispair.audit.facts import Origin
from mispair.audit.verdicts import Verdicts
from mispair.data.config import DataConfig
from mispair.data.features import FeatureStore
from mispair.data.readers.dispatch import open_pairing
from mispair.errors import InputError
from mispair.progress import Tell, silent
from mispair.scale.judge_many import AuditContext, judge_many
from mispair.scale.vectors import PairVectors, StoredSide
from mispair.workflows.pair_vectors import Subject, about_subject, open_vectors

LARGE = 200_000  # pairs from which nothing is compared with everything any more


def quick_audit(
    image_embeddings: Any,
    text_embeddings: Any,
    *,
    image_ids: Any = None,
    captions: Any = None,
    table: Any = None,
    data: Origin | None = None,
    tell: Tell = silent,
) -> Verdicts:
    """`mispair.audit.quick.quick_audit`, for any number of pairs; of very many, arrays are read in place."""

    def column(role: str, given: Any) -> Any:
        return pick_column(table, given, role) if isinstance(given, str) and table is not None else given

    texts = column("text_embeddings", text_embeddings)
    if isinstance(texts, str) or not hasattr(texts, "__len__") or len(texts) < LARGE:
        return quick.quick_audit(
            image_embeddings, text_embeddings, image_ids=image_ids, captions=captions, table=table, data=data, tell=tell
        )
    named = (("image_embeddings", column("image_embeddings", image_embeddings)), ("text_embeddings", texts))
    sides = [StoredSide(name, _store(name, values)) for name, values in named]
    shown = {"image_ids": column("image_ids", image_ids), "captions": column("captions", captions)}
    listed = {name: None if given is None else as_texts(given) for name, given in shown.items()}
    for name, values in listed.items():
        if values is not None and len(values) != len(texts):
            raise InputError(f"there are {len(values):,} {name} for {len(texts):,} pairs; expected one for each")
    ids, image_of = listed["image_ids"], None
    PairVectors(sides[0], sides[1])  # as many rows on both sides
    if ids is not None:
        number: dict[str, int] = {}
        image_of = np.array([number.setdefault(name, len(number)) for name in ids], np.int64)
        first = np.full(len(number), -1, np.int64)
        first[image_of[::-1]] = np.arange(len(ids))[::-1]
        sides[0], ids = StoredSide(sides[0].name, sides[0].store.subset(first)), list(number)
        image_of = None if len(number) == len(texts) else image_of
    pairs = PairVectors(sides[0], sides[1], image_of, listed["captions"], ids)
    return judge_many(pairs, AuditContext(data or {}), tell)


def quick_audit_files(
    first: str | os.PathLike[str],
    second: str | os.PathLike[str],
    *,
    data: DataConfig | None = None,
    tell: Tell = silent,
) -> Verdicts:
    """`mispair.audit.quick.quick_audit_files`, for any number of pairs; of very many, the files are read in place."""
    subject = Subject.of_embeddings(os.fspath(first), os.fspath(second), data)
    if len(open_pairing(subject.data, "all").image_of_text) < LARGE:
        return quick.quick_audit_files(first, second, data=data, tell=tell)
    return judge_many(open_vectors(subject), about_subject(subject), tell)


def _store(name: str, values: Any) -> FeatureStore:
    array = values.detach().numpy() if isinstance(values, Tensor) else as_array(name, values)
    if array.ndim != 2 or array.shape[1] < 2:
        raise InputError(f"{name} must be one vector per pair, shape (n, d), got shape {tuple(array.shape)}")
    return FeatureStore(array)
