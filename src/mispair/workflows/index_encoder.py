"""From pictures to an index by an encoder alone: one that has one space for pictures and texts; nothing is trained.

Both sides of such an encoder lie around a mean of their own, so each side is taken around its mean before it is
compared; what was taken off stands in the index and is taken off queries too.
Letters: N pairs, D width of the vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mispair.auditing.verdicts import Verdicts
from mispair.data import DataConfig, PairData, list_data_splits, open_split
from mispair.data.features import FeatureStore
from mispair.data.section_files import values_in_full
from mispair.encoders.protocol import Encoder
from mispair.errors import InputError
from mispair.progress import Tell, silent
from mispair.reviewing.identity import audit_identity
from mispair.searching.index import CENTRE, Manifest, Side
from mispair.searching.write import kind_for, write_index
from mispair.workflows.embed import Encoding, encode_jointly
from mispair.workflows.index_run import metadata_of, place_of, splits_of
from mispair.workflows.raw_inputs import prepared_pictures

Vectors = NDArray[np.float32]
_SIDES: tuple[Side, Side] = ("images", "texts")
_BLOCK = 16_384


def build_encoder_index(
    data: DataConfig, folder: Path, encoding: Encoding, verdicts: Verdicts | None = None, tell: Tell = silent
) -> Manifest:
    """Write the index of every pair of a data set of pictures into `folder`; what the cache holds is not encoded again.

    Raises:
        InputError: the encoder has no common space, or pictures cannot be had or decoded (`missing: skip`).
    """
    encoded = encode_jointly(data, encoding, tell)
    config = encoded.config
    opened = {name: open_split(config, name) for name in splits_of(list_data_splits(config), verdicts)}
    pairs = sum(len(part) for part in opened.values())
    centre = np.stack([_mean([_store(part, side) for part in opened.values()]) for side in _SIDES])
    manifest = Manifest(
        model=encoded.encoder.fingerprint, source=encoded.encoder.name, encoder=encoded.encoder.name,
        data=place_of(config), config=values_in_full(config), pairs=pairs, width=centre.shape[1],
        kind=kind_for(pairs), sides=config.sides, audit=None if verdicts is None else audit_identity(verdicts),
    )  # fmt: skip
    blocks = {side: _blocks(list(opened.values()), side, centre[k]) for k, side in enumerate(_SIDES)}
    write_index(folder, manifest, blocks, metadata_of(opened, verdicts), tell, {CENTRE: centre})
    return manifest


def joint_texts(encoder: Encoder, texts: Sequence[str], centre: Vectors) -> Vectors:
    """(n, D) unit vectors of some texts around the mean `centre` (D,) of the index."""
    return _around(encoder.encode_texts(list(texts), ("vector",))["vector"].values, centre)


def joint_pictures(encoder: Encoder, pictures: Sequence[bytes], centre: Vectors) -> Vectors:
    """(n, D) unit vectors of some picture files around the mean `centre` (D,) of the index."""
    seen = encoder.encode_images(prepared_pictures(encoder, pictures), ("vector",))["vector"].values
    return _around(encoder.in_text_space(seen), centre)


def _store(part: PairData, side: Side) -> FeatureStore:
    store = part.images if side == "images" else part.texts
    if not isinstance(store, FeatureStore):
        raise InputError(f"{part.name} has no vectors of its {side}; index pictures with captions")
    return store


def _mean(stores: Sequence[FeatureStore]) -> Vectors:
    total = sum(_unit(block[:, 0]).sum(0, np.float64) for store in stores for block in store.blocks(_BLOCK))
    return np.asarray(total / sum(len(store) for store in stores), np.float32)


def _blocks(parts: list[PairData], side: Side, centre: Vectors) -> Iterator[Vectors]:
    for part in parts:
        rows = part.table.image_rows if side == "images" else part.table.text_rows
        for start in range(0, len(rows), _BLOCK):
            yield _around(_store(part, side).take(rows[start : start + _BLOCK])[0][:, 0], centre)


def _around(vectors: Vectors, centre: Vectors) -> Vectors:
    return _unit(_unit(vectors) - centre)


def _unit(vectors: Vectors) -> Vectors:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12), np.float32)
