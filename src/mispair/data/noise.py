"""Mismatches made on purpose: both published protocols, two kinds of real-world damage, and index files.

An index says which image row is shown in each place: published files have one entry per image (it moves with all
its captions) or one per caption, and both lengths are read here. Where captions are replaced, ours have two rows.
Letters: N pairs, I images.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from math import floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mispair.data.config import NoiseConfig, Protocol
from mispair.data.files.npy import open_integers
from mispair.data.pair_table import PairTable
from mispair.errors import InputError

Rng = np.random.Generator


@dataclass(frozen=True, eq=False)
class NoiseIndex:
    """What each pair shows: (N,) image rows and, where captions were replaced, (N,) text rows."""

    images: NDArray[np.int64]
    texts: NDArray[np.int64]
    stored: NDArray[np.int64]  # as written to a file: (I,) or (N,) image rows, or (2, N) image and text rows
    chosen: int  # images (protocol image) or pairs drawn; some may have drawn their own place again
    chosen_pairs: int  # pairs concerned

    @property
    def hash(self) -> str:
        return noise_hash(self.images, self.texts)


def noise_hash(images: NDArray[np.int64], texts: NDArray[np.int64] | None = None) -> str:
    """SHA-256 of what every pair shows. Both lengths of the same noise hash alike, since N is what counts."""
    digest = hashlib.sha256(np.ascontiguousarray(images, "<i8").tobytes())
    if texts is not None and not np.array_equal(texts, np.arange(len(texts))):
        digest.update(np.ascontiguousarray(texts, "<i8").tobytes())
    return digest.hexdigest()


def corrupt(table: PairTable, rate: float, protocol: Protocol, rng: Rng) -> PairTable:
    """A `rate` share of the images (or captions) of `table` shuffled among themselves; truth is recorded."""
    return apply(table, permute(table, rate, protocol, rng))


def shift(table: PairTable, by: int, start: int) -> PairTable:
    """Captions off by `by` rows from pair `start` on."""
    return apply(table, shift_index(table, by, start))


def repeat(table: PairTable, rate: float, rng: Rng, captions: int = 1) -> PairTable:
    """`captions` of the table shown with a `rate` share of the pairs."""
    return apply(table, repeat_index(table, rate, rng, captions))


def apply(table: PairTable, index: NoiseIndex) -> PairTable:
    """The pairs as `index` shows them, with what was there before as their truth."""
    return table.showing(index.images, index.texts)


def make_index(table: PairTable, config: NoiseConfig) -> NoiseIndex:
    """The noise `config` asks for; the same configuration always gives the same index."""
    if config.index:
        return read_index(config.index, table)
    rng = np.random.default_rng(config.seed)
    if config.shift:
        start = len(table) - chosen_count(len(table), config.rate) if config.start is None else config.start
        return shift_index(table, config.shift, start)
    if config.repeat:
        return repeat_index(table, config.rate, rng, config.repeat)
    return permute(table, config.rate, config.protocol, rng)


def chosen_count(total: int, rate: float) -> int:
    """floor(rate * total), without the 28 that floating point makes of 0.29 * 100."""
    if not 0.0 <= rate <= 1.0:
        hint = f"; did you mean {rate / 100:g}?" if 1.0 < rate <= 100.0 else ""
        raise InputError(f"rate must be a share between 0 and 1, got {rate:g}{hint}")
    return floor(rate * total + 1e-9)


def permute(table: PairTable, rate: float, protocol: Protocol, rng: Rng) -> NoiseIndex:
    """protocol "image" moves whole images with all their captions; "caption" moves captions one by one."""
    if protocol == "image":
        slots = np.arange(_image_count(table))
        chosen = np.sort(rng.choice(len(slots), chosen_count(len(slots), rate), replace=False))
        slots[chosen] = rng.permutation(chosen)
        concerned = int(np.isin(table.image_rows, chosen).sum())
        return NoiseIndex(slots[table.image_rows], table.text_rows, slots, len(chosen), concerned)
    if protocol != "caption":
        raise InputError(f"protocol must be 'image' or 'caption', got {protocol!r}")
    shown = table.image_rows.copy()
    chosen = np.sort(rng.choice(len(table), chosen_count(len(table), rate), replace=False))
    shown[chosen] = shown[rng.permutation(chosen)]
    return NoiseIndex(shown, table.text_rows, shown, len(chosen), len(chosen))


def shift_index(table: PairTable, by: int, start: int) -> NoiseIndex:
    """From pair `start` on, the image of pair p goes to pair p + `by`; what falls off the end starts over there."""
    tail = len(table) - start
    if not 0 <= start <= len(table):
        raise InputError(f"a shift starts at a pair between 0 and {len(table) - 1:,}, got {start:,}")
    if by == 0 or abs(by) >= max(tail, 2):
        raise InputError(f"a shift must move by 1 to {max(tail - 1, 1):,} rows either way, got {by:,}")
    shown = table.image_rows.copy()
    shown[start:] = np.roll(shown[start:], by)
    return NoiseIndex(shown, table.text_rows, shown, tail, tail)


def repeat_index(table: PairTable, rate: float, rng: Rng, captions: int = 1) -> NoiseIndex:
    """A `rate` share of the pairs keep their image and show one of so many captions, drawn from the table."""
    chosen = rng.choice(len(table), chosen_count(len(table), rate), replace=False)
    repeated = table.text_rows[rng.integers(len(table), size=captions)]
    texts = table.text_rows.copy()
    texts[chosen] = repeated[rng.integers(captions, size=len(chosen))]
    return NoiseIndex(table.image_rows, texts, np.stack([table.image_rows, texts]), len(chosen), len(chosen))


def read_index(path: str | os.PathLike[str], table: PairTable) -> NoiseIndex:
    """A published or saved index file for `table`: one image row per image or per pair, or (2, N) of ours."""
    images, pairs = _image_count(table), len(table)
    what = f"a noise index of {images:,} entries (one per image) or {pairs:,} (one per caption)"
    stored = open_integers(path, what)
    if stored.ndim == 2 and stored.shape == (2, pairs):
        _refuse_outside(path, stored[0], images, "image")
        _refuse_outside(path, stored[1], int(table.text_rows.max()) + 1, "caption")
        shown, texts = stored[0], stored[1]
    elif stored.ndim != 1:
        raise InputError(f"{path} has shape {stored.shape}; expected {what}, so give the index of this data set")
    else:
        _refuse_outside(path, stored, images, "image")
        if len(stored) not in (images, pairs):
            raise InputError(f"{path} has {len(stored):,} entries; expected {what}: it belongs to other data")
        shown = stored if len(stored) == pairs else stored[table.image_rows]
        texts = table.text_rows
    changed = int(((shown != table.image_rows) | (texts != table.text_rows)).sum())
    return NoiseIndex(shown, texts, stored, changed, changed)


def write_index(path: str | os.PathLike[str], index: NoiseIndex) -> None:
    """Save what `read_index` reads."""
    with open(path, "wb") as stream:
        np.save(stream, index.stored, allow_pickle=False)


def _image_count(table: PairTable) -> int:
    return int(table.image_rows.max()) + 1


def _refuse_outside(path: Any, values: NDArray[np.int64], limit: int, name: str) -> None:
    wrong = np.flatnonzero((values < 0) | (values >= limit))
    if wrong.size:
        raise InputError(
            f"{path}, entry {wrong[0]:,} is {values[wrong[0]]:,}; expected {name} rows between 0 and {limit - 1:,}, so"
            " give the index of this data set"
        )
