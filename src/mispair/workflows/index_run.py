"""From a run to an index of its vectors; made again, only what is new goes through the model.

Letters: N pairs, I images, M texts, D width of the vectors, B items of a batch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mispair.auditing.verdicts import Verdicts
from mispair.data import DataConfig, PairData, list_data_splits
from mispair.data.files.npy import open_array
from mispair.data.section_files import values_in_full
from mispair.errors import InputError
from mispair.evaluation_mode import evaluation_mode
from mispair.progress import Tell, silent
from mispair.retrieval.scoring import device_of
from mispair.reviewing.identity import audit_identity
from mispair.searching.index import KEYS, Index, Manifest, Side
from mispair.searching.write import kind_for, write_index
from mispair.workflows.other_data import read_as
from mispair.workflows.trained_run import TrainedRun

_SIDES: tuple[Side, Side] = ("images", "texts")
_BATCH = 256
_BLOCK = 16_384
_PROBED = 16  # images and texts by which a model's score is compared with the product of its vectors
_SAME = 5e-3  # closer than this they are the same but for the half precision of the vectors


@dataclass(frozen=True)
class BuiltIndex:
    """What building an index gave."""

    manifest: Manifest
    encoded: int  # images and texts that went through the model
    kept: int  # those whose vectors were taken from the index that was there


def model_hash(run: TrainedRun) -> str:
    """SHA-256 of the weights and words of a run: an index of it is refused when they change."""
    digest = hashlib.sha256()
    for file in run.model_files:
        digest.update(file.read_bytes())
    if run.vocabulary is not None:
        digest.update(run.vocabulary.content_hash.encode())
    return digest.hexdigest()


def build_index(
    run: TrainedRun,
    folder: Path,
    data: DataConfig | None = None,
    verdicts: Verdicts | None = None,
    tell: Tell = silent,
) -> BuiltIndex:
    """Write the index of every pair of a run's data, or of other data, into `folder`.

    Where an index of the same model is there, images and texts it holds are not encoded again.

    Args:
        verdicts: an audit of one of the splits; its probabilities stand in the index and can be filtered by.
    """
    config = run.config.data if data is None else read_as(run, data, tell)
    opened = {name: run.open_split(name, config) for name in splits_of(list_data_splits(config), verdicts)}
    model = model_hash(run)
    known = _known(folder, model)
    parts = {side: [_encode(run, part, side, known.get(side), tell) for part in opened.values()] for side in _SIDES}
    pairs = sum(len(part) for part in opened.values())
    manifest = Manifest(
        model=model, source=str(run.folder.resolve()), data=place_of(config), pairs=pairs,
        joined=tuple(str(folder.resolve()) for folder in run.folders[1:]),
        config=values_in_full(config), width=parts["images"][0].vectors.shape[1], kind=kind_for(pairs),
        sides=config.sides, rerank=_scores_finer(run, next(iter(opened.values()))),
        audit=None if verdicts is None else audit_identity(verdicts),
    )  # fmt: skip
    rows: dict[Side, list[NDArray[np.int64]]] = {
        "images": [part.table.image_rows for part in opened.values()],
        "texts": [part.table.text_rows for part in opened.values()],
    }
    keys = np.stack([np.concatenate([p.keys[r] for p, r in zip(parts[s], rows[s], strict=True)]) for s in _SIDES], 1)
    blocks = {s: _blocks([p.vectors for p in parts[s]], rows[s]) for s in _SIDES}
    write_index(folder, manifest, blocks, metadata_of(opened, verdicts), tell, {KEYS: keys})
    every = [part for side in parts.values() for part in side]
    return BuiltIndex(manifest, sum(p.encoded for p in every), sum(len(p.vectors) - p.encoded for p in every))


def splits_of(listed: list[str], verdicts: Verdicts | None) -> list[str]:
    """The splits to index: all of them, or what an audit judged where that is everything at once."""
    judged = None if verdicts is None else verdicts.facts.data.get("split")
    if judged == "all" or (judged is not None and listed == ["all"]):
        return [str(judged)]  # the splits cut the same pairs otherwise
    return listed or ["train"]


@dataclass(frozen=True)
class _IndexedSide:
    """The items of one side of a split, encoded."""

    vectors: NDArray[np.float16]  # (I, D) or (M, D) unit vectors
    keys: NDArray[np.bytes_]  # (I,) or (M,) hashes of what the model was shown
    encoded: int


@dataclass(frozen=True)
class _Known:
    """One side of an index that is there, sorted by key."""

    keys: NDArray[np.bytes_]
    rows: NDArray[np.int64]
    vectors: NDArray[np.float16]

    def find(self, keys: NDArray[np.bytes_]) -> NDArray[np.int64]:
        """(B,) the row of each key; -1 where there is none."""
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[at] == keys, self.rows[at], -1)


def _known(folder: Path, model: str) -> dict[Side, _Known]:
    """What an index of the same model in `folder` holds already; nothing where there is none that can be used."""
    try:
        index = Index.open(folder, model)
        keys = np.array(open_array(folder / KEYS, "the keys of an index"))
    except InputError:
        return {}
    if keys.shape != (len(index), 2) or keys.dtype != np.dtype("S16"):
        return {}
    known: dict[Side, _Known] = {}
    for place, side in enumerate(_SIDES):
        order = np.argsort(keys[:, place], kind="stable")
        known[side] = _Known(keys[order, place], order, index.vectors[side])
    return known


def _encode(run: TrainedRun, part: PairData, side: Side, known: _Known | None, tell: Tell) -> _IndexedSide:
    read = part.image_batch if side == "images" else part.text_batch
    count = len(part.images) if side == "images" else len(part.image_of_text)
    vectors: NDArray[np.float16] | None = None
    keys = np.empty(count, "S16")
    encoded = 0
    for start in range(0, count, _BATCH):
        rows = np.arange(start, min(start + _BATCH, count))
        values, mask = read(rows)
        keys[rows] = _keys(values, mask)
        place = np.full(len(rows), -1) if known is None else known.find(keys[rows])
        new = np.flatnonzero(place < 0)
        made = np.empty((0, 0), np.float16)
        if len(new):
            made = _vectors(run, values[new], mask[new], side)
            encoded += len(new)
        if vectors is None:
            width = made.shape[1] if known is None else known.vectors.shape[1]
            vectors = np.empty((count, width), np.float16)
        if known is not None:
            vectors[rows[place >= 0]] = known.vectors[place[place >= 0]]
        if len(new):
            vectors[rows[new]] = made
        tell(f"encoding {side}", int(rows[-1]) + 1, count)
    assert vectors is not None, "a split has pairs"
    return _IndexedSide(vectors, keys, encoded)


def _keys(values: Tensor, mask: Tensor) -> list[bytes]:
    """(B,) a hash of each item: its real rows, as the model reads them."""
    real, shown = mask.numpy(), values.numpy()
    return [hashlib.blake2b(shown[k][real[k]].tobytes(), digest_size=16).digest() for k in range(len(shown))]


@torch.no_grad()
def _vectors(run: TrainedRun, values: Tensor, mask: Tensor, side: Side) -> NDArray[np.float16]:
    """(B, D) unit vectors; products of joined ones are the mean of the networks' products."""
    pooled = []
    for model in run.models:
        device = device_of(model)
        with evaluation_mode(model):
            if side == "images":
                pooled.append(model.pool_images(model.encode_images(values.to(device), mask.to(device))))
            else:
                pooled.append(model.pool_texts(model.encode_texts(values.to(device), mask.to(device))))
    joined = torch.cat([part.float().cpu() for part in pooled], 1)
    return np.asarray(nn.functional.normalize(joined, dim=1).numpy(), np.float16)


@torch.no_grad()
def _scores_finer(run: TrainedRun, part: PairData) -> bool:
    """Whether the model scores pairs otherwise than by the product of their vectors: search then has two stages."""
    images = part.image_batch(np.arange(min(_PROBED, len(part.images))))
    texts = part.text_batch(np.arange(min(_PROBED, len(part.image_of_text))))
    product = _vectors(run, *images, "images").astype(np.float32) @ _vectors(run, *texts, "texts").T.astype(np.float32)
    score = np.zeros_like(product)
    for model in run.models:
        with evaluation_mode(model):
            shown, said = model.encode_images(*images), model.encode_texts(*texts)
            score += model.link(model.similarity(shown, said)).float().cpu().numpy() / len(run.models)
    return bool(np.abs(score - product).max() > _SAME)


def _blocks(vectors: list[NDArray[np.float16]], rows: list[NDArray[np.int64]]) -> Iterator[NDArray[np.float16]]:
    for own, chosen in zip(vectors, rows, strict=True):
        for start in range(0, len(chosen), _BLOCK):
            yield own[chosen[start : start + _BLOCK]]


def metadata_of(opened: dict[str, PairData], verdicts: Verdicts | None) -> pa.Table:
    """One row per pair of the splits, in order: what is shown of it, and what an audit said."""
    tables, offset = [], 0
    for split, part in opened.items():
        table = part.table
        names = pa.array(table.image_ids or [str(row) for row in range(len(part.images))], pa.string())
        captions = pa.array(table.captions or [""] * len(part.image_of_text), pa.string())
        columns = {
            "image": pa.array(table.image_rows + offset, pa.int64()),
            "image_path": names.take(pa.array(table.image_rows)),
            "caption": captions.take(pa.array(table.text_rows)),
            "split": pa.array([split] * len(table), pa.string()),
        }
        if verdicts is not None:
            columns |= _judged(verdicts, split, len(table))
        tables.append(pa.table(columns))
        offset += len(part.images)
    return pa.concat_tables(tables)


def _judged(verdicts: Verdicts, split: str, pairs: int) -> dict[str, Any]:
    """What an audit said of the pairs of a split, and which pair of the audit each is; empty for other splits."""
    if verdicts.facts.data.get("split") != split:
        return {"p_mismatch": pa.nulls(pairs, pa.float64()), "audit_pair": pa.nulls(pairs, pa.int64())}
    if len(verdicts) != pairs:
        raise InputError(f"the audit judged {len(verdicts):,} pairs of {split}, the data has {pairs:,}; audit it again")
    return {
        "p_mismatch": pa.array(verdicts.p_mismatch, pa.float64()),
        "audit_pair": pa.array(np.arange(pairs), pa.int64()),
    }


def place_of(config: DataConfig) -> str:
    """The file or folder of some data, links followed: an index says what it was made from."""
    return config.path if config.path == "scenes" else str(Path(config.path).resolve())
