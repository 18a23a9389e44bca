"""quick_audit: judge pairs of embeddings as they are. Similarity, and agreement with neighbours on both sides."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mispair.audit.damage import MOST_TWINS
from mispair.audit.judge import judge
from mispair.audit.neighbours import Neighbours
from mispair.audit.scan import Space, Tell, silent
from mispair.audit.verdicts import Verdicts
from mispair.data.config import DataConfig
from mispair.data.pairs import content_hash
from mispair.data.sources import given_pairs, open_source
from mispair.data.table import PairTable
from mispair.errors import InputError


def quick_audit(
    image_embeddings: Any,
    text_embeddings: Any,
    *,
    image_ids: Sequence[str | int] | None = None,
    captions: Sequence[str] | None = None,
    data: dict[str, Any] | None = None,
    tell: Tell = silent,
) -> Verdicts:
    """Judge pairs whose embeddings somebody has already: row k of one side is paired with row k of the other.

    Args:
        image_embeddings, text_embeddings: (n, d) arrays or tensors from one encoder for both sides, such as CLIP.
        image_ids, captions: (n,) to be shown in the verdicts.
        data: what to say of the data in the facts.
    """
    a, b = _checked("image_embeddings", image_embeddings), _checked("text_embeddings", text_embeddings)
    if len(a) != len(b):
        raise InputError(
            f"there are {len(a):,} image embeddings and {len(b):,} text embeddings; expected as many, row k of one with"
            " row k of the other"
        )
    _refuse_widths(a, b)
    for name, given in (("image_ids", image_ids), ("captions", captions)):
        if given is not None and len(given) != len(a):
            raise InputError(f"there are {len(given):,} {name} for {len(a):,} pairs; expected one for each")
    rows = np.arange(len(a))
    names = None if image_ids is None else [str(name) for name in image_ids]
    return _judge(a, b, PairTable(rows, rows, captions, names), data, tell)


def quick_audit_files(
    first: str | os.PathLike[str], second: str | os.PathLike[str], *, tell: Tell = silent
) -> Verdicts:
    """`quick_audit` of two .npy files; the second may have several rows for each of the first."""
    paths = [os.path.abspath(path) for path in (first, second)]
    config = DataConfig(path=paths[0], second=paths[1])
    source = open_source(config, "all")
    sides = []
    for path, store in zip(paths, (source.images, source.text_features), strict=True):
        assert store is not None
        if store.regions != 1:
            raise InputError(
                f"{path} has {store.regions} vectors per row; expected embeddings, one per row: (rows, width)"
            )
        sides.append(_checked(path, np.concatenate([block[:, 0] for block in store.blocks(8192)])))
    about: dict[str, Any] = {"path": paths[0], "split": "all", "format": "arrays", "hash": content_hash(source)}
    about |= {"noise_hash": None, "config": config.model_dump(mode="json")}
    a, b = sides
    _refuse_widths(a, b)
    return _judge(a, b, given_pairs(source), about, tell)


def _judge(a: Tensor, b: Tensor, table: PairTable, data: dict[str, Any] | None, tell: Tell) -> Verdicts:
    a, b = _centred(a), _centred(b)
    neighbours = Neighbours(
        a, b, table.image_rows, table.text_rows, lambda done, total: tell("finding neighbours", done, total)
    )
    return judge(
        Space(a, b),
        table,
        more_evidence=neighbours.disagreement,
        held_out="nothing was trained, so nothing was learned by heart",
        features=a if len(a) <= MOST_TWINS else None,
        data=data,
        tell=tell,
    )


def _refuse_widths(a: Tensor, b: Tensor) -> None:
    if a.shape[1] != b.shape[1]:
        raise InputError(
            f"image embeddings have width {a.shape[1]} and text embeddings {b.shape[1]}; expected one space for both,"
            " so take both from one model such as CLIP, or train one: mispair audit DATA --train"
        )


def _checked(name: str, values: Any) -> Tensor:
    array = values.detach().cpu() if isinstance(values, Tensor) else torch.from_numpy(np.array(values, np.float32))
    array = array.float()
    if array.ndim != 2 or array.shape[1] < 2:
        raise InputError(f"{name} must be one vector per pair, shape (n, d), got shape {tuple(array.shape)}")
    wrong = (~torch.isfinite(array).all(1)).nonzero()[:, 0]
    if len(wrong):
        raise InputError(f"{name} must be finite, but row {int(wrong[0])} holds NaN or infinity; encode it again")
    return array


def _centred(vectors: Tensor) -> Tensor:
    """Unit vectors around their mean: the two sides of a contrastive model lie apart, and all of one side alike."""
    unit = torch.nn.functional.normalize(vectors, dim=1)
    return torch.nn.functional.normalize(unit - unit.mean(0), dim=1)
