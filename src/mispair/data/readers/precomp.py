"""Precomputed folders as SCAN and everything after it reads them: {split}_ims.npy, {split}_caps.txt, {split}_ids.txt.

Arrays of dev and test usually repeat each image once per caption, train arrays do not. Both give the same table:
the number of captions per image is derived from what is there, and repeated rows are folded. Where images have
different numbers of captions, {split}_image_of.npy says whose each caption is (see files/image_of.py).
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mispair.counted import counted
from mispair.data.config import DataConfig
from mispair.data.features import FeatureStore, open_features
from mispair.data.files.captions import CaptionFile, find_captions, read_captions
from mispair.data.files.image_of import ENDING as IMAGE_OF
from mispair.data.files.image_of import read_image_of
from mispair.data.files.reading import read_lines, reading
from mispair.data.files.weights import read_weights
from mispair.data.readers.protocol import in_order
from mispair.data.source import Finding, Source
from mispair.errors import InputError
from mispair.progress import Progress

ENDINGS = ("_ims.npy", "_feat.npy")  # the second is IMRAM's name for the same file


class PrecomputedFolder:
    """{split}_ims.npy with {split}_caps.txt or .tsv, and {split}_ids.txt where there is one."""

    def recognises(self, config: DataConfig) -> bool:
        return os.path.isdir(config.path) and bool(list_splits(Path(config.path)))

    def splits(self, config: DataConfig) -> list[str]:
        return list_splits(Path(config.path))

    def open(
        self, config: DataConfig, split: str, *, features: bool = True, progress: Progress | None = None
    ) -> Source:
        return open_precomp(Path(config.path), split, config.weights if split == "train" else None)


def list_splits(folder: Path) -> list[str]:
    """Splits whose features lie in `folder`, in the usual order."""
    with reading(folder, "a folder of features and captions"):
        names = os.listdir(folder)
    return in_order({name.removesuffix(end) for name in names for end in ENDINGS if name.endswith(end)} - {""})


def open_precomp(folder: Path, split: str, weights: str | None = None) -> Source:
    """One split of a precomputed folder; with {split}_{weights}.npy where that is named."""
    array = _find_features(folder, split)
    captions = read_captions(find_captions(folder, split))
    images = open_features(array, f"the image features of {split}")
    note = None
    image_of_text = read_image_of(folder / f"{split}{IMAGE_OF}", len(images), len(captions.captions))
    if image_of_text is None:
        per_image, images, note = fold_repeated_rows(images, len(captions.captions), captions)
        image_of_text = np.repeat(np.arange(len(images)), per_image)
    ids, id_findings = _read_ids(folder, split, len(images), image_of_text, captions)
    notes = () if note is None else (note,)
    if images.array.dtype == np.float64:
        notes = (*notes, f"{array.name} is float64 and read as float32; saving it as float32 halves the file")
    return Source(
        name=folder.resolve().name,
        split=split,
        images=images,
        image_of_text=image_of_text,
        captions=captions.captions,
        image_ids=ids,
        notes=notes,
        findings=(*captions.findings(split), *id_findings),
        weights=None if weights is None else read_weights(folder / f"{split}_{weights}.npy", len(image_of_text)),
    )


def fold_repeated_rows(
    store: FeatureStore, texts: int, captions: CaptionFile | None = None, name: str | None = None
) -> tuple[int, FeatureStore, str | None]:
    """How many of `texts` belong to each row of `store`, the store without repeated rows, and a note if it had some."""
    rows = len(store)
    shown = store.path.name if store.path else "the features"
    other = str(captions.path) if captions else name or "the second side"
    if texts % rows:
        raise InputError(
            f"{other} has {texts:,} {'captions' if captions else 'rows'} for the {rows:,} rows of {shown}; expected a"
            f" multiple, {_remedy(captions, texts, rows)}"
        )
    if texts > rows:
        return texts // rows, store, None
    per_image = repeats(store)
    if per_image == 1:
        return 1, store, None
    note = f"{shown} repeats each image {per_image} times in a row: folded to {rows // per_image:,} images"
    return per_image, store.subset(np.arange(0, rows, per_image)), note


def repeats(store: FeatureStore, most: int = 100) -> int:
    """How often each item is repeated in consecutive rows, 1 when it is not.

    The first two rows already differ in an array without repetition, so nothing more of it is read.
    """
    rows = len(store)
    if rows < 2 or not _equal_to_next(store, 0, 2)[0]:
        return 1
    block = max(2, min(4096, 64_000_000 // (4 * store.regions * store.width)))
    starts = [0]
    for start in range(0, rows - 1, block):
        equal = _equal_to_next(store, start, min(start + block + 1, rows))
        starts.extend((np.flatnonzero(~equal) + start + 1).tolist())
    runs = np.diff([*starts, rows])
    common = int(np.gcd.reduce(runs))
    # One run means that all rows are alike: a broken array, unless it is a single image with its few captions.
    return common if common <= most and (len(runs) > 1 or rows <= 10) else 1


def _equal_to_next(store: FeatureStore, start: int, stop: int) -> NDArray[np.bool_]:
    values, _ = store.take(np.arange(start, stop))
    flat = values.reshape(len(values), -1).view(np.uint32)  # by bits, so that NaN equals itself
    same: NDArray[np.bool_] = (flat[1:] == flat[:-1]).all(1)
    return same


def _find_features(folder: Path, split: str) -> Path:
    for end in ENDINGS:
        if os.path.exists(path := folder / f"{split}{end}"):
            return path
    splits = list_splits(folder)
    there = f"this folder has {', '.join(splits)}" if splits else "this folder has no *_ims.npy at all"
    some = "; take some images of train for it, with their captions" if split == "dev" and "train" in splits else ""
    raise InputError(f"{folder} has no {split}_ims.npy; expected the image features of {split}, but {there}{some}")


def _read_ids(
    folder: Path, split: str, images: int, image_of_text: NDArray[np.int64], captions: CaptionFile
) -> tuple[list[str] | None, tuple[Finding, ...]]:
    """Names of the images: from {split}_ids.txt (by image, by row or by caption) or the first column of a .tsv."""
    path = folder / f"{split}_ids.txt"
    if os.path.exists(path):
        ids = [line.strip() for line in read_lines(path, "image ids, one per line").lines]
        where = path.name
    elif captions.ids is not None:
        ids, where = captions.ids, captions.path.name
    else:
        return None, ()
    if len(ids) == images:
        return ids, ()
    if len(ids) != len(image_of_text):
        text = (
            f"{where} has {len(ids):,} ids for {images:,} images and {len(image_of_text):,} captions;"
            " the ids are ignored, so write one per image"
        )
        return None, (Finding("count mismatch", split, abs(len(ids) - images), text),)
    names: list[str] = [str(image) for image in range(images)]  # of an image without captions nothing is known
    for text_row in range(len(ids) - 1, -1, -1):
        names[image_of_text[text_row]] = ids[text_row]
    mixed = sorted({int(image) for image, name in zip(image_of_text, ids, strict=True) if names[image] != name})
    if mixed:
        lines = np.flatnonzero(image_of_text == mixed[0]) + 1
        text = (
            f"{where}: the {len(lines)} captions of image {mixed[0]} (line {lines[0]:,}) carry different"
            " ids; the order of lines decides, so check that it is the order of the images"
        )
        return names, (Finding("ids disagree", split, len(mixed), text, tuple(mixed[:20])),)
    return names, ()


def _remedy(captions: CaptionFile | None, texts: int, rows: int) -> str:
    if captions is None:
        return "one row per row or the same number for each"
    tail = captions.blank_tail
    if tail and texts - tail >= rows and any((texts - k) % rows == 0 for k in range(1, tail + 1)):
        return f"so remove the {counted(tail, 'blank line')} at its end"
    if captions.ids and texts > 1 and (texts - 1) % rows == 0:
        return "so remove the heading in its first line, if that is one"
    if texts < rows:
        missing = counted(rows - texts, "caption is", "captions are")
        return f"so {missing} missing, or the two files belong to different splits"
    return f"so remove {counted(texts % rows, 'caption')} or add {rows - texts % rows:,}"
