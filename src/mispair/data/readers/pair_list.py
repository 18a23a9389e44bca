"""Pairs listed one by one, with the name of the image in each: what most readers find, and how it becomes a `Source`.

Letters: I distinct images, M texts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mispair.counted import counted
from mispair.data.config import DataConfig
from mispair.data.embedded_folder import EmbeddedFolder
from mispair.data.features import FeatureStore, open_features
from mispair.data.files.ids import Matched, match_ids, read_ids
from mispair.data.files.reading import some_names
from mispair.data.holdout import held_out, image_shares
from mispair.data.picture_store import PictureIndex
from mispair.data.readers.protocol import in_order
from mispair.data.source import Finding, Source
from mispair.errors import InputError
from mispair.spreadsheet import as_cell

WITHOUT_FEATURES = "ids without features"
WITHOUT_PICTURE = "pictures missing"
FETCH = " (addresses on the web are not fetched: download them with img2dataset and give the folder it writes as DATA)"
_SPLIT_NAMES = {
    **dict.fromkeys(("train", "training", "restval"), "train"),
    **dict.fromkeys(("dev", "val", "valid", "validation"), "dev"),
    **dict.fromkeys(("test", "testing"), "test"),
}


@dataclass(frozen=True, eq=False)
class PairList:
    """M texts in order. Every list has one entry per text."""

    path: Path  # the file or folder that sentences name
    images: list[str]
    captions: list[str] | None
    splits: list[str] | None
    ids: list[str] | None
    lines: NDArray[np.int64]  # (M,) line or row a person finds the text in
    rows: NDArray[np.int64]  # (M,) row of the table: a row with a list of captions gives several texts
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    pictures: PictureIndex | None = None  # where the pictures are, when there are some
    features: FeatureStore | None = None  # one row per row of the table, when the table itself holds them
    weights: NDArray[np.float32] | None = None  # (M,) how much each pair counts


def usual_split(name: str) -> str:
    """What a split is called here, however it is written: dev for Val and validation, train for COCO's restval."""
    return _SPLIT_NAMES.get(name.lower(), name)


def on_the_web(images: Iterable[str]) -> bool:
    """Whether some of the pictures are named by an address."""
    return any("://" in name[:12] for name in images)


def list_splits_of(pairs: PairList, config: DataConfig) -> list[str]:
    """The splits the list names; ["all"] where it names none. Where dev is missing it is held out of train."""
    if pairs.splits is None:
        return ["all"]
    return in_order(set(pairs.splits) | ({"dev"} if _held_out_dev(pairs, config).any() else set()))


def open_pair_list(pairs: PairList, config: DataConfig, split: str) -> Source:
    """One split of the list, with its features and pictures where there are some."""
    chosen, notes = _choose(pairs, split, config)
    notes = [*pairs.notes, *notes]
    findings = list(pairs.findings)
    no_picture: dict[str, str] = {}
    matched, store = _features(pairs, config, split, findings)
    if matched is not None:
        notes += matched.notes
        lost = chosen & (matched.rows < 0)
        if lost.any():
            findings.append(_no_features(pairs, np.flatnonzero(lost), store, split))
            chosen &= ~lost
    elif pairs.pictures is not None:
        missing = pairs.pictures.missing
        lost = chosen & np.array([name in missing for name in pairs.images], bool)
        if lost.any():
            findings.append(_no_picture(pairs, np.flatnonzero(lost), missing, split))
            no_picture = {pairs.images[k]: missing[pairs.images[k]] for k in np.flatnonzero(lost)}
            chosen &= ~lost
    else:
        notes.append(
            f"{pairs.path.name} came with no features and no pictures: only its text can be checked; name them with"
            f" --features or --images{FETCH if on_the_web(pairs.images) else ''}"
        )
    texts = np.flatnonzero(chosen)
    if not len(texts):
        raise InputError(_nothing_left(pairs, config, split, store))
    names: dict[str, int] = {}
    image_of_text = np.array([names.setdefault(pairs.images[k], len(names)) for k in texts], np.int64)
    if store is not None and matched is not None:
        first = np.unique(image_of_text, return_index=True)[1]
        store = store.subset(matched.rows[texts[first]])
    return Source(
        name=pairs.path.stem or pairs.path.resolve().name,
        split=split,
        images=store,
        image_of_text=image_of_text,
        captions=None if pairs.captions is None else [pairs.captions[k] for k in texts],
        text_features=_second(config, pairs, texts),
        image_ids=list(names),
        text_ids=None if pairs.ids is None else [pairs.ids[k] for k in texts],
        notes=tuple(notes),
        findings=tuple(findings),
        lines=pairs.lines[texts],
        pictures=None if pairs.pictures is None else pairs.pictures.select(list(names)),
        positions=texts,
        weights=None if pairs.weights is None else pairs.weights[texts],
        no_picture=no_picture,
        listed=len(pairs.images),
    )


def features_path(config: DataConfig, path: Path) -> Path | None:
    """Where the features of a list lie: where the configuration says, else NAME.npy or features.npy beside NAME.csv."""
    if config.features:
        return Path(config.features)
    beside = (path.with_suffix(".npy"), path.with_name("features.npy")) if path.suffix else ()
    return next((file for file in beside if os.path.exists(file)), None)


def found_by_name(config: DataConfig, path: Path) -> bool:
    """Whether pictures, or the rows of features that stand for them, are found by the names in the list alone."""
    features = features_path(config, path)
    return features is None or _ids_path(config, features) is not None


def _ids_path(config: DataConfig, features: Path) -> str | None:
    """The list of which image each row of the features is, where there is one."""
    beside = features.with_name(f"{features.stem}_ids.txt")
    return config.ids if config.ids is not None else str(beside) if os.path.exists(beside) else None


def _choose(pairs: PairList, split: str, config: DataConfig) -> tuple[NDArray[np.bool_], list[str]]:
    """Which texts belong to `split`, and what a person must know about how that was decided."""
    name = pairs.path.name
    if pairs.splits is None:
        chosen = held_out(pairs.images, split, config.holdout, str(pairs.path))
        drawn = f"{name} has no split column: train, dev and test are parts drawn by image name (data.holdout)"
        return chosen, [] if split == "all" else [drawn]
    named = np.array(pairs.splits)
    if split == "all":
        return np.ones(len(named), bool), []
    chosen = named == split
    if split in ("train", "dev") and "dev" not in pairs.splits and "train" in pairs.splits:
        part = held_out(pairs.images, split, (config.holdout[0], 0.0), str(pairs.path))
        note = (
            f"{name} has no dev split: {config.holdout[0]:.0%} of its train images are held out as dev (data.holdout)"
        )
        chosen = (named == "train") & part
        if chosen.any():
            return chosen, [note]
    if not chosen.any():
        there = ", ".join(sorted(set(pairs.splits))[:6])
        way = "; without a split column, parts of the rows are held out" if split == "train" else ""
        raise InputError(f"{pairs.path} has no rows of split '{split}'; expected one of {there} or all{way}")
    return chosen, []


def _held_out_dev(pairs: PairList, config: DataConfig) -> NDArray[np.bool_]:
    """(M,) which texts of train serve as dev: none where there is a dev split, or too little to spare."""
    assert pairs.splits is not None
    named = np.array(pairs.splits)
    train = named == "train"
    if "dev" in pairs.splits or not train.any():
        return np.zeros(len(named), bool)
    dev = train & (image_shares(pairs.images) < config.holdout[0])
    return dev if dev.sum() < train.sum() else np.zeros(len(named), bool)


def _features(
    pairs: PairList, config: DataConfig, split: str, findings: list[Finding]
) -> tuple[Matched | None, FeatureStore | None]:
    """The features, and the row of them for each text (-1 where there is none)."""
    path = features_path(config, pairs.path)
    if path is None:
        if pairs.features is None:
            return None, None
        first = {name: int(row) for name, row in zip(reversed(pairs.images), reversed(pairs.rows), strict=True)}
        return Matched(np.array([first[name] for name in pairs.images], np.int64), (), 0), pairs.features
    store = open_features(path, f"the {config.sides[0]} features of {pairs.path.name}")
    matched = _match(pairs, config, path, store)
    if matched.unused:
        text = f"{path.name} holds {counted(matched.unused, 'image')} that {pairs.path.name} never names; not used"
        findings.append(Finding("features without a pair", split, matched.unused, text))
    return matched, store


def _match(pairs: PairList, config: DataConfig, path: Path, store: FeatureStore) -> Matched:
    if (ids := _ids_path(config, path)) is not None:
        return match_ids(pairs.images, read_ids(Path(ids), len(store), path), Path(ids))
    in_first_order = {name: k for k, name in enumerate(dict.fromkeys(pairs.images))}
    table_rows = int(pairs.rows[-1]) + 1
    if len(store) == table_rows:
        first = {name: int(row) for name, row in zip(reversed(pairs.images), reversed(pairs.rows), strict=True)}
        return Matched(np.array([first[name] for name in pairs.images], np.int64), (), 0)
    if len(store) == len(in_first_order):
        note = f"{path.name} has one row per image: row k is taken as the k-th image named in the table"
        return Matched(np.array([in_first_order[name] for name in pairs.images], np.int64), (note,), 0)
    raise InputError(
        f"{path} has {len(store):,} rows; expected {table_rows:,} (one per row of {pairs.path}) or"
        f" {len(in_first_order):,} (one per image), or a list of ids (--ids)"
    )


def _no_features(pairs: PairList, lost: NDArray[np.int64], store: FeatureStore | None, split: str) -> Finding:
    names = list(dict.fromkeys(pairs.images[k] for k in lost))
    path = None if store is None else store.path
    text = (
        f"{pairs.path.name}, line {pairs.lines[lost[0]]:,}: {counted(len(names), 'image has', 'images have')} no row in"
        f" {'the features' if path is None else path.name} {_why(names, path)}; add the features or leave"
        f" {counted(len(lost), 'pair')} out with --missing skip"
    )
    return Finding(WITHOUT_FEATURES, split, len(names), text, _first(pairs.lines[lost]), left_out=True)


def _why(names: list[str], features: Path | None) -> str:
    """The first of the images without features; why, where an encoder could not use their pictures and listed them."""
    made = None if features is None else EmbeddedFolder(features.parent)
    reasons = {} if made is None else made.reasons()
    if made is None or as_cell(names[0]) not in reasons:
        return f"(first {some_names(names, 2)})"
    return f"(first {names[0]!r}: {reasons[as_cell(names[0])]}; all are listed in {made.failed_file})"


def _no_picture(pairs: PairList, lost: NDArray[np.int64], missing: dict[str, str], split: str) -> Finding:
    names = list(dict.fromkeys(pairs.images[k] for k in lost))
    text = (
        f"{pairs.path.name}, line {pairs.lines[lost[0]]:,}: {counted(len(names), 'picture')} cannot be had"
        f" (first {names[0]!r}: {missing[names[0]]}); add what is missing or leave"
        f" {counted(len(lost), 'pair')} out with --missing skip"
    )
    return Finding(WITHOUT_PICTURE, split, len(names), text, _first(pairs.lines[lost]), left_out=True)


def _nothing_left(pairs: PairList, config: DataConfig, split: str, store: FeatureStore | None) -> str:
    if store is not None:
        return f"{pairs.path}: no pair of split {split} has features; expected ids as in {config.ids or store.path}"
    assert pairs.pictures is not None
    name, reason = next(iter(pairs.pictures.missing.items()))
    return (
        f"{pairs.path}: no pair of split {split} has a picture ({name!r}: {reason}); expected them in"
        f" {pairs.pictures.where}, so say where they are with --images"
    )


def _second(config: DataConfig, pairs: PairList, texts: NDArray[np.int64]) -> FeatureStore | None:
    if config.second is None:
        return None
    store = open_features(config.second, f"the {config.sides[1]} features of {pairs.path.name}")
    table_rows = int(pairs.rows[-1]) + 1
    if len(store) == len(pairs.images):  # one per text
        return store.subset(texts)
    if len(store) != table_rows:
        raise InputError(
            f"{config.second} has {len(store):,} rows; expected {table_rows:,}, one per row of {pairs.path}"
        )
    return store.subset(pairs.rows[texts])


def _first(lines: Sequence[int] | NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(int(line) for line in lines[:20])
