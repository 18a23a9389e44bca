"""Tables of pairs: CSV, TSV, JSONL or Parquet rows joined with features by image id.

Letters: I distinct images, M rows (texts).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mispair.data.captions import not_utf8
from mispair.data.columns import recognise
from mispair.data.config import DataConfig
from mispair.data.features import FeatureStore, open_features
from mispair.data.files import shorten
from mispair.data.holdout import held_out
from mispair.data.idlist import Matched, match_ids, read_ids
from mispair.data.precomp import ORDER
from mispair.data.rows import READERS, Rows, Value, read_rows
from mispair.data.source import Finding, Source
from mispair.errors import InputError

TABLES = tuple(READERS)
WITHOUT_FEATURES = "ids without features"


@dataclass(frozen=True)
class Read:
    """The columns of a table that matter, one entry per text."""

    images: list[str]
    captions: list[str] | None
    splits: list[str] | None
    ids: list[str] | None
    lines: NDArray[np.int64]
    rows: NDArray[np.int64]  # row of the table: a row with a list of captions gives several texts
    note: str
    findings: tuple[Finding, ...]


def table_splits(config: DataConfig) -> list[str]:
    """Splits of the split column; without one, the parts a holdout makes."""
    splits = _read(config, "all").splits
    if splits is None:
        return ["all"]
    return sorted(set(splits), key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))


def open_table(config: DataConfig, split: str) -> Source:
    """One split of a table, with its features when there are some."""
    read = _read(config, split)
    path = Path(config.path)
    chosen = _choose(read, split, config)
    notes = [read.note]
    if read.splits is None and split != "all":
        notes.append(f"{path.name} has no split column: {split} is a part drawn by image name (data.holdout)")
    images, findings, store = read.images, list(read.findings), None
    features = features_path(config, path)
    if features is None:
        notes.append(f"{path.name} came with no features: only its text can be checked; name them with --features")
    matched: Matched | None = None
    if features is not None:
        store = open_features(features, f"the {config.sides[0]} features of {path.name}")
        matched = _match(config, features, store, read, split)
        notes += matched.notes
        lost = np.flatnonzero(chosen & (matched.rows < 0))
        if len(lost):
            findings.append(_missing(path, features, read, lost, config, split))
            chosen &= matched.rows >= 0
        if matched.unused:
            text = f"{features.name} holds {matched.unused:,} images that {path.name} never names; they are not used"
            findings.append(Finding("features without a pair", split, matched.unused, text))
    texts = np.flatnonzero(chosen)
    if not len(texts):
        raise InputError(f"{path}: no pair of split {split} has features; expected ids as in {config.ids or features}")
    names: dict[str, int] = {}
    image_of_text = np.array([names.setdefault(images[k], len(names)) for k in texts], np.int64)
    if store is not None and matched is not None:
        first = np.unique(image_of_text, return_index=True)[1]
        store = store.subset(matched.rows[texts[first]])
    return Source(
        name=path.stem,
        split=split,
        images=store,
        image_of_text=image_of_text,
        captions=None if read.captions is None else [read.captions[k] for k in texts],
        text_features=_second(config, read, texts),
        image_ids=list(names),
        text_ids=None if read.ids is None else [read.ids[k] for k in texts],
        notes=tuple(notes),
        findings=tuple(findings),
        lines=read.lines[texts],
    )


def _read(config: DataConfig, split: str) -> Read:
    path = Path(config.path)
    rows = read_rows(path)
    columns = recognise(rows.header, config.columns, str(path), needs_caption=config.second is None)
    captions, per_row = _captions(path, rows, columns.caption)
    of_row = np.repeat(np.arange(len(rows.lines)), per_row)
    lines = np.array(rows.lines, np.int64)[of_row]
    images = [_name(rows.columns[columns.image][k], path, rows.lines[k], columns.image) for k in range(len(rows.lines))]
    splits = None
    if columns.split is not None:
        raw = [_name(value, path, rows.lines[k], columns.split) for k, value in enumerate(rows.columns[columns.split])]
        splits = [_SPLIT_NAMES.get(name.lower(), name) for name in raw]
    ids = None
    if columns.id is not None:
        ids = [str(value) for value in rows.columns[columns.id]]
    return Read(
        [images[k] for k in of_row],
        captions,
        None if splits is None else [splits[k] for k in of_row],
        None if ids is None else [ids[k] for k in of_row],
        lines,
        of_row,
        columns.note(path.name, rows.header),
        not_utf8(path, split, rows.replaced),
    )


_SPLIT_NAMES = {"validation": "dev", "val": "dev", "valid": "dev", "training": "train", "restval": "train"}


def _captions(path: Path, rows: Rows, column: str | None) -> tuple[list[str] | None, list[int]]:
    """The captions and how many each row has; a list in a row means several captions of one image."""
    if column is None:
        return None, [1] * len(rows.lines)
    captions: list[str] = []
    per_row = []
    for line, value in zip(rows.lines, rows.columns[column], strict=True):
        several = value if isinstance(value, list) else [value]
        if not several or not all(text is None or isinstance(text, str) for text in several):
            kind = "empty list" if value == [] else type(value).__name__
            raise InputError(f"{path}, line {line}: column {column!r} holds a {kind}; expected a caption as text")
        captions += [(text or "").strip() for text in several]
        per_row.append(len(several))
    return captions, per_row


def _name(value: Value, path: Path, line: int, column: str) -> str:
    if value is None or isinstance(value, (list, dict, float, bool)) or not str(value).strip():
        shown = "nothing" if value is None or value == "" else repr(value)[:40]
        raise InputError(
            f"{path}, line {line}: column {column!r} holds {shown}; expected a name or a number, fill it in"
        )
    return str(value).strip()


def _choose(read: Read, split: str, config: DataConfig) -> NDArray[np.bool_]:
    if read.splits is None:
        return held_out(read.images, split, config.holdout, config.path)
    chosen = np.ones(len(read.splits), bool) if split == "all" else np.array(read.splits) == split
    if not chosen.any():
        there = ", ".join(sorted(set(read.splits))[:6])
        raise InputError(f"{config.path} has no rows of split '{split}'; expected one of {there} or all")
    return chosen


def features_path(config: DataConfig, path: Path) -> Path | None:
    if config.features:
        return Path(config.features)
    beside = path.with_suffix(".npy")
    return beside if os.path.exists(beside) else None


def _match(config: DataConfig, features: Path, store: FeatureStore, read: Read, split: str) -> Matched:
    """The row of the features for each text, -1 where there is none."""
    ids = config.ids
    if ids is None and os.path.exists(beside := features.with_name(f"{features.stem}_ids.txt")):
        ids = str(beside)
    if ids is not None:
        return match_ids(read.images, read_ids(Path(ids), len(store), features), Path(ids))
    in_order = {name: k for k, name in enumerate(dict.fromkeys(read.images))}
    table_rows = int(read.rows[-1]) + 1
    if len(store) == table_rows:
        first = {name: int(row) for name, row in zip(reversed(read.images), reversed(read.rows), strict=True)}
        return Matched(np.array([first[name] for name in read.images], np.int64), (), 0)
    if len(store) == len(in_order):
        note = f"{features.name} has one row per image: row k is taken as the k-th image named in the table"
        return Matched(np.array([in_order[name] for name in read.images], np.int64), (note,), 0)
    raise InputError(
        f"{features} has {len(store):,} rows; expected {table_rows:,} (one per row of {config.path}) or"
        f" {len(in_order):,} (one per image), or a list of ids (--ids)"
    )


def _missing(
    path: Path, features: Path, read: Read, lost: NDArray[np.int64], config: DataConfig, split: str
) -> Finding:
    names = list(dict.fromkeys(read.images[k] for k in lost))
    text = (
        f"{path.name}, line {read.lines[lost[0]]:,}: {len(names):,} images have no row in {features.name} (first"
        f" {shorten(names, 2)}); add their features or leave these {len(lost):,} pairs out with --missing skip"
    )
    return Finding(WITHOUT_FEATURES, split, len(names), text, tuple(read.lines[lost[:20]].tolist()))


def _second(config: DataConfig, read: Read, texts: NDArray[np.int64]) -> FeatureStore | None:
    if config.second is None:
        return None
    store = open_features(config.second, f"the {config.sides[1]} features of {Path(config.path).name}")
    table_rows = int(read.rows[-1]) + 1
    if len(store) != table_rows:
        raise InputError(
            f"{config.second} has {len(store):,} rows; expected {table_rows:,}, one per row of {config.path}"
        )
    return store.subset(read.rows[texts])
