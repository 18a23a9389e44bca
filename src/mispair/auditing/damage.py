"""What kind of wrong? Repeated captions, images under too many captions, empty captions, the same picture twice.

Each finding has a count, the evidence in a sentence and a remedy in another. Clean data has none.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mispair.auditing.facts import CROWDED, EMPTY_CAPTIONS, REPEATED, TWINS, Damage
from mispair.auditing.similarity import best_partners
from mispair.counted import counted, either
from mispair.functional.leave_one_out import centred

Rows = NDArray[np.int64]

_MOST_IMAGES = 5  # images one caption may be shown with before it is looked at
_ALIKE = 4.0  # standard deviations above images drawn at random, from which some have something in common
_SHARE = 0.02  # of all images, from which a caption is damage for certain; fewer may be a stock phrase that fits
MOST_TWINS = 20_000  # images among which twins are looked for: the search compares every two
_TWIN = 0.05  # of the usual distance to the nearest neighbour: closer is the same picture again
_EQUAL = 1e-5  # distance of equal vectors but for rounding; what is usual is not measured on copies
_SHOWN = 50
_PLACEHOLDERS = {
    *("", "caption", "description", "image", "img", "no caption", "no description", "no title", "none", "null", "nan"),
    *("na", "n/a", "not available", "image not found", "photo", "picture", "placeholder", "tbd", "test", "todo"),
    *("undefined", "unknown", "untitled", "xxx"),
}
_FILE_NAME = re.compile(r"(https?://\S+|\S+\.(jpe?g|png|gif|webp|bmp|tiff?)|(img|dsc|dscn|pict?|image)[-_ ]?\d+)", re.I)


def shared_captions(captions: Sequence[str | int], image_rows: Rows, images: Tensor) -> NDArray[np.float64]:
    """(N,): 0, or for a caption on a great many unlike images the probability that it is not about this one.

    Such a caption cannot be judged like the others: a network that meets it with every image finds it likely with all.
    A caption some of whose images (I, d) are alike, as "a photo of a dog" has them, is no damage: where it stands with
    more of them than with others of its size that are drawn at random, it is judged like any other.
    """
    around = centred(images)
    usual, spread = _likeness_at_random(around)
    p = np.zeros(len(captions))
    least = max(_MOST_IMAGES, _SHARE * len(np.unique(image_rows)))
    pairs_of: dict[str | int, list[int]] = defaultdict(list)
    for pair, caption in enumerate(captions):
        pairs_of[plain_caption(caption) if isinstance(caption, str) else caption].append(pair)
    for pairs in pairs_of.values():
        rows = np.unique(image_rows[pairs])
        if len(rows) <= least:
            continue
        chance = usual + _ALIKE * spread * math.sqrt(2 / (len(rows) * (len(rows) - 1)))
        if _likeness(around[torch.from_numpy(rows)]) < chance:
            p[pairs] = 1 - 1 / len(rows)
    return p


def _likeness(vectors: Tensor) -> float:
    """Mean cosine of every two of some unit vectors, (n, d)."""
    count = len(vectors)
    return float((vectors.sum(0).square().sum() - count) / (count * (count - 1)))


def _likeness_at_random(vectors: Tensor) -> tuple[float, float]:
    """Mean and standard deviation of the cosine of two of (I, d) unit vectors drawn at random."""
    count = len(vectors)
    squares = float((vectors.T @ vectors).square().sum() - count) / (count * (count - 1))
    mean = _likeness(vectors)
    return mean, math.sqrt(max(squares - mean**2, 0.0))


def find_repeated_captions(captions: Sequence[str], image_rows: Rows, p_mismatch: NDArray[np.float64]) -> Damage | None:
    """One caption on many images, most of which it does not fit. captions (N,) of the pairs."""
    pairs_of: dict[str, list[int]] = defaultdict(list)
    for pair, caption in enumerate(captions):
        pairs_of[plain_caption(caption)].append(pair)
    repeated = []
    for caption, pairs in pairs_of.items():
        images = len(np.unique(image_rows[pairs]))
        if caption and images > _MOST_IMAGES and p_mismatch[pairs].mean() > 0.5:
            repeated.append((images, caption, pairs))
    if not repeated:
        return None
    repeated.sort(key=lambda entry: -entry[0])
    images, _, where = repeated[0]
    concerned = sorted(pair for _, _, pairs in repeated for pair in pairs)
    return Damage(
        kind=REPEATED,
        count=len(concerned),
        evidence=(
            f"{counted(len(repeated), 'caption stands', 'captions stand')} on more than {_MOST_IMAGES} images and"
            f" {either(len(repeated), 'fits', 'fit')} few of them; {_quoted(captions[where[0]])} is on {images:,}."
        ),
        remedy="Fetch the real captions of these rows, or drop them: nothing in the set can replace what is lost.",
        pairs=tuple(concerned[:_SHOWN]),
    )


def find_crowded_images(image_rows: Rows, names: Sequence[str]) -> Damage | None:
    """Images under far more captions than the data's usual number. names (I,) by image row."""
    counts = np.bincount(image_rows)
    usual = float(np.median(counts[counts > 0]))
    crowded = np.flatnonzero(counts > max(3 * usual, usual + 5))
    if len(crowded) == 0:
        return None
    worst = int(crowded[np.argmax(counts[crowded])])
    pairs = np.flatnonzero(np.isin(image_rows, crowded))
    return Damage(
        kind=CROWDED,
        count=len(pairs),
        evidence=(
            f"{counted(len(crowded), 'image has', 'images have')} far more captions than the usual"
            f" {usual:g}; {_quoted(names[worst])} has {counts[worst]:,}."
        ),
        remedy="See whether a placeholder picture or a default file name took the place of the real ones.",
        pairs=tuple(pairs[:_SHOWN].tolist()),
    )


def find_empty_captions(captions: Sequence[str]) -> Damage | None:
    """Captions that say nothing: blank, without a letter, a placeholder, a file name or an address."""
    empty = [pair for pair, caption in enumerate(captions) if says_nothing(caption)]
    if not empty:
        return None
    return Damage(
        kind=EMPTY_CAPTIONS,
        count=len(empty),
        evidence=f"{counted(len(empty), 'caption says', 'captions say')} nothing about an image; the first is"
        f" {_quoted(captions[empty[0]])} (pair {empty[0]:,}).",
        remedy="Drop these rows or write captions for them: mispair fix --action drop leaves them out.",
        pairs=tuple(empty[:_SHOWN]),
    )


def find_twins(images: Tensor, image_rows: Rows, names: Sequence[str], others: Mapping[str, Tensor]) -> Damage | None:
    """The same picture twice: under two names here, or here and in another split.

    images (I, d) and others[split] (., d) are features, not what a model makes of them: a model may find two pictures
    alike that are not the same.
    """
    if len(images) < 10:
        return None
    centre = images.mean(0)
    own = torch.nn.functional.normalize(images - centre, dim=1)
    near, partner = best_partners(own, own, 2)
    itself = partner[:, 0] == torch.arange(len(own))
    distance = 1 - torch.where(itself, near[:, -1], near[:, 0])
    apart = distance[distance > _EQUAL]
    limit = max(_EQUAL, _TWIN * float(apart.median())) if len(apart) else _EQUAL
    twins: dict[int, str] = {}
    for row in (distance < limit).nonzero()[:, 0].tolist():
        other = int(partner[row, 1] if itself[row] else partner[row, 0])
        twins[row] = f"{_quoted(names[row])} and {_quoted(names[other])}"
    here = len(twins)
    elsewhere: dict[str, int] = {}
    for split, features in others.items():
        nearest = best_partners(own, torch.nn.functional.normalize(features - centre, dim=1), 1)
        rows = ((1 - nearest[0][:, 0]) < limit).nonzero()[:, 0].tolist()
        if rows:
            elsewhere[split] = len(rows)
            for row in rows:
                twins.setdefault(row, f"{_quoted(names[row])} and row {int(nearest[1][row, 0]):,} of {split}")
    if not twins:
        return None
    pairs = np.flatnonzero(np.isin(image_rows, list(twins)))
    where = " and ".join(f"{count:,} in {split}" for split, count in {"this split": here, **elsewhere}.items() if count)
    return Damage(
        kind=TWINS,
        count=len(twins),
        evidence=f"{counted(len(twins), 'image has', 'images have')} a twin{f' ({where})' if elsewhere else ''}, for"
        f" instance {next(iter(twins.values()))}.",
        remedy="Give twins one name (in the table's column of images, or image_ids= from Python) and one split: under"
        " two names they count as wrong answers, in two splits they leak the test.",
        pairs=tuple(pairs[:_SHOWN].tolist()),
    )


def says_nothing(caption: str) -> bool:
    plain = plain_caption(caption)
    return plain in _PLACEHOLDERS or not any(c.isalpha() for c in plain) or bool(_FILE_NAME.fullmatch(caption.strip()))


def plain_caption(caption: str) -> str:
    """Case, spaces and punctuation at the ends do not make another caption."""
    return " ".join(caption.casefold().split()).strip(" .!?,;:-_\"'")


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:59] + "…")
