"""Judge embeddings as they are: in memory where they are few, in the passes of `mispair.scale` where they are many."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import Tensor

from mispair.auditing import quick
from mispair.auditing.embeddings import GivenPairs, as_array, number_images, refuse_sparse
from mispair.auditing.facts import Origin
from mispair.auditing.verdicts import Verdicts
from mispair.data.config import DataConfig
from mispair.data.embedded_folder import table_of
from mispair.data.features import FeatureStore
from mispair.data.readers.dispatch import open_pairing
from mispair.errors import InputError
from mispair.progress import Tell, silent
from mispair.scale.judge_many import AuditContext, judge_many
from mispair.scale.vectors import PairVectors, StoredSide
from mispair.workflows.pair_vectors import Subject, about_subject, open_vectors

LARGE = 200_000  # pairs from which nothing is compared with everything any more


def quick_audit(pairs: GivenPairs, *, data: Origin | None = None, tell: Tell = silent) -> Verdicts:
    """`mispair.auditing.quick.quick_audit`, for any number of pairs; of very many, arrays are read in place."""
    texts = pairs.column("text_embeddings")
    if not hasattr(texts, "__len__") or len(texts) < LARGE:
        return quick.quick_audit(pairs, data=data, tell=tell)
    images = StoredSide("image_embeddings", _store("image_embeddings", pairs.column("image_embeddings")))
    read = StoredSide("text_embeddings", _store("text_embeddings", texts))
    ids, captions = pairs.shown("image_ids", len(texts)), pairs.shown("captions", len(texts))
    PairVectors(images, read)  # as many rows on both sides
    image_of = None
    if ids is not None:
        ids, image_of, first = number_images(ids)
        images = StoredSide(images.name, images.store.subset(first))
        image_of = None if len(ids) == len(texts) else image_of
    return judge_many(PairVectors(images, read, image_of, captions, ids), AuditContext(data or {}), tell)


def quick_audit_files(
    first: str | os.PathLike[str],
    second: str | os.PathLike[str],
    *,
    data: DataConfig | None = None,
    seen: str | os.PathLike[str] | None = None,
    tell: Tell = silent,
) -> Verdicts:
    """`mispair.auditing.quick.quick_audit_files`, for any number of pairs; very many are read in place.

    Two arrays of a folder that `mispair embed` wrote are paired as its table says.
    """
    data = data or table_of(first, second)
    subject = Subject.of_embeddings(os.fspath(first), os.fspath(second), data)
    if len(open_pairing(subject.data, "all").image_of_text) < LARGE:
        return quick.quick_audit_files(first, second, data=data, seen=seen, tell=tell)
    return judge_many(open_vectors(subject), about_subject(subject), tell)


def _store(name: str, values: Any) -> FeatureStore:
    if isinstance(values, Tensor):
        dense = refuse_sparse(name, values).detach().cpu()
        values = (dense.float() if dense.dtype == torch.bfloat16 else dense).numpy()  # numpy has no bfloat16
    array = as_array(name, values)
    if array.ndim != 2 or array.shape[1] < 2:
        raise InputError(f"{name} must be one vector per pair, shape (n, d), got shape {tuple(array.shape)}")
    return FeatureStore(array)
