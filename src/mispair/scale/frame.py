"""The frame: what every shard compares its pairs with. Every process makes the same one from the same data.

Landmarks are pairs drawn by a fixed seed from the row numbers of the whole set. Both sides are centred on the mean of
the landmarks, ranks are counted among them, neighbours are sought among them, and a pair is re-paired with one of them
that a hash of its row number names. So what is measured of a pair depends on the whole set and on the pair, never on
the shard it is measured in.

Letters: N pairs, L landmarks, d width, F kinds of evidence, K bins of the grid.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mispair.auditing.calibration import refuse_few, refuse_few_comparable
from mispair.auditing.damage import plain_caption, shared_captions
from mispair.auditing.embeddings import unit_length
from mispair.data.source import FEWEST
from mispair.errors import InputError
from mispair.functional.tell_apart import fit_weights
from mispair.scale.vectors import Floats32, PairVectors, Rows

Floats = NDArray[np.float64]

LANDMARKS = 4096
NEAR = 3  # kinds of evidence that need no neighbours: they come first
BINS = 8192  # of the grid that suspicion is counted on
_MARGIN = 0.25  # of the landmarks' range, on either side of the grid


@dataclass(frozen=True)
class Yardstick:
    """What makes one number of the first kinds of evidence, and the grid it is counted on."""

    weights: tuple[float, ...]  # (F,) or fewer
    low: float = 0.0
    high: float = 1.0
    middle: float = 0.0  # of the median re-paired landmark

    @classmethod
    def fitted(cls, given: Floats, repaired: Floats) -> Yardstick:
        """Such that given landmarks are told from re-paired ones, (L, F) each."""
        unscaled = cls(tuple(fit_weights(given, repaired).tolist()))
        wrong = unscaled.suspicion(repaired)
        both = np.concatenate([unscaled.suspicion(given), wrong])
        room = _MARGIN * max(float(np.ptp(both)), 1e-9)
        return cls(unscaled.weights, float(both.min()) - room, float(both.max()) + room, float(np.median(wrong)))

    def suspicion(self, evidence: Floats) -> Floats:
        """(C, F) -> (C,), larger is more suspicious. Added up one after the other: the same for any number of rows."""
        total = np.zeros(len(evidence))
        for kind, weight in enumerate(self.weights):
            total += weight * evidence[:, kind]
        return total

    def count(self, suspicion: Floats) -> NDArray[np.int64]:
        """(K,): how many are in each bin, those beyond the grid in its last ones."""
        place = ((suspicion - self.low) * (BINS / (self.high - self.low))).astype(np.int64).clip(0, BINS - 1)
        return np.bincount(place, minlength=BINS)


@dataclass(frozen=True, eq=False)
class Frame:
    """Landmarks and what they tell; the yardsticks come from the landmarks' own evidence."""

    pairs: int
    landmarks: Rows  # (L,) ascending pair rows
    landmark_images: Rows  # (L,) image row of each
    means: tuple[Tensor, Tensor]  # (d,) of unit vectors, images and texts
    images: Tensor  # (L, d) centred unit vectors
    texts: Tensor  # (L, d)
    key: str  # of the data, its pairing and what made the vectors
    crowded: tuple[str, ...] = ()  # captions on a great many unlike images: not judged like the others
    full: Yardstick = Yardstick(())  # of all evidence
    near: Yardstick = Yardstick(())  # of score and ranks alone: what a proposed pair is judged by

    def unit(self, vectors: Floats32, side: int) -> Tensor:
        """Unit vectors around the mean of the landmarks, (b, d); side 0 images, 1 texts."""
        values = unit_length(torch.from_numpy(vectors)) - self.means[side]
        return torch.nn.functional.normalize(values, dim=1, out=values)


def draw_landmarks(pairs: int) -> Rows:
    """The rows of the landmarks among `pairs`: always the same ones."""
    if pairs <= LANDMARKS:
        return np.arange(pairs)
    return np.sort(np.random.default_rng(0).choice(pairs, LANDMARKS, replace=False)).astype(np.int64)


def data_key(data: PairVectors) -> str:
    """What tells this data, its pairing and what made its vectors from other: the landmarks are read."""
    return hashlib.sha256(data.pairing_key() + data.stored(draw_landmarks(len(data)))).hexdigest()


def make_frame(data: PairVectors) -> Frame:
    """The frame of a data set: some thousand rows are read, wherever they lie.

    Raises InputError where there are too few pairs, two widths, or nothing to compare.
    """
    from mispair.scale.evidence import Measure

    count = len(data)
    refuse_few(count)
    landmarks = draw_landmarks(count)
    raw = data.image_vectors(landmarks), data.text_vectors(landmarks)
    if raw[0].shape[1] != raw[1].shape[1]:
        raise InputError(
            f"image embeddings have width {raw[0].shape[1]} and text embeddings {raw[1].shape[1]}; expected one space"
            " for both, so take both from one model such as CLIP, or train one: mispair audit DATA --train"
        )
    units = [unit_length(torch.from_numpy(side)) for side in raw]
    for what, vectors in zip(("image embeddings", "text embeddings"), units, strict=True):
        if bool((vectors == vectors[0]).all()):
            raise InputError(f"all {len(vectors):,} {what} looked at are the same, so nothing tells the pairs apart")
    means = units[0].mean(0), units[1].mean(0)
    image_rows = data.image_rows(landmarks)
    frame = Frame(count, landmarks, image_rows, means, units[0], units[1], data_key(data))
    frame = replace(frame, images=frame.unit(raw[0], 0), texts=frame.unit(raw[1], 1))
    frame = replace(frame, crowded=_crowded(data, frame))
    measured = Measure(frame).of(landmarks, image_rows, raw[0], raw[1], repair=1.0)
    if len(measured.repaired) < FEWEST:
        raise InputError("every image is paired with every text: there is nothing to compare the pairs with")
    alone = np.array([name is None for name in crowded_names(data, frame, landmarks)])
    refuse_few_comparable(alone)
    given, wrong = measured.evidence[alone], measured.repaired
    near = Yardstick.fitted(given[:, :NEAR], wrong[:, :NEAR])
    return replace(frame, full=Yardstick.fitted(given, wrong), near=near)


def crowded_names(data: PairVectors, frame: Frame, rows: Rows) -> list[str | None]:
    """(b,): the crowded caption that each pair shows, None where it shows another."""
    if not frame.crowded or data.captions is None:
        return [None] * len(rows)
    known = set(frame.crowded)
    captions = data.captions
    plain = (plain_caption(captions[row]) for row in rows.tolist())
    return [name if name in known else None for name in plain]


def _crowded(data: PairVectors, frame: Frame) -> tuple[str, ...]:
    """Captions that the landmarks show so often, on unlike images, that they are damage; see `shared_captions`."""
    if data.captions is None:
        return ()
    captions = [data.captions[row] for row in frame.landmarks.tolist()]
    _, place = np.unique(frame.landmark_images, return_inverse=True)
    images = torch.zeros(int(place.max()) + 1, frame.images.shape[1])
    images[torch.from_numpy(place)] = frame.images
    often = shared_captions(captions, place, images) > 0
    return tuple(sorted({plain_caption(captions[k]) for k in np.flatnonzero(often).tolist()}))
