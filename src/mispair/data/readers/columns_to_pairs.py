"""Columns of a table, from whichever file, as a list of pairs: names, captions, splits and where the pictures are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mispair.counted import counted
from mispair.data.config import DataConfig
from mispair.data.features import FeatureStore
from mispair.data.files.captions import not_utf8
from mispair.data.files.columns import Columns
from mispair.data.files.table_rows import TableRows, Value
from mispair.data.files.weights import weights_of_column
from mispair.data.picture_store import PictureIndex, PictureStore
from mispair.data.readers.pair_list import PairList, features_path, found_by_name, usual_split
from mispair.data.readers.picture_files import no_captions
from mispair.data.readers.pictures_of_table import find_pictures
from mispair.data.source import Finding
from mispair.errors import InputError
from mispair.value_words import kind_of, shorten


def pairs_of_columns(
    path: Path,
    rows: TableRows,
    columns: Columns,
    config: DataConfig,
    *,
    splits: list[str] | None = None,
    inside: tuple[PictureStore, list[Any], list[str]] | None = None,
    features: FeatureStore | None = None,
) -> PairList:
    """The pairs of `rows`, whose columns mean what `columns` says.

    Args:
        splits: of each row, where the file's name says it and no column does.
        inside: pictures that stand in the table: what reads them, and for each row its place and its name.
        features: one row per row of the table.
    """
    captions, per_row = _captions(path, rows, columns.caption)
    of_row = np.repeat(np.arange(len(rows.lines)), per_row)
    loose = features is None and found_by_name(config, path)  # a row without a name is one whose picture is missing
    images = _names(path, rows, columns.image, loose and columns.file is None) if columns.image is not None else None
    if images is None:
        assert inside is not None, "a table names its images or holds their pictures"
        images = inside[2]
    if columns.split is not None:
        splits = [usual_split(name) for name in _names(path, rows, columns.split)]
    ids = None if columns.id is None else [str(value) for value in rows.columns[columns.id]]
    findings = not_utf8(path, "all", rows.replaced)
    notes = [columns.note(path.name, rows.header)]
    if captions is None and inside is not None and config.second is None:
        notes.append(no_captions(path))
    pictures: PictureIndex | None
    if inside is not None:
        store, places, _ = inside
        of_name: dict[str, list[Any]] = {}
        for name, place in zip(images, places, strict=True):
            of_name.setdefault(name, []).append(place)
        first = {name: some[0] for name, some in of_name.items()}  # of several rows the first
        again = {name: some[1:] for name, some in of_name.items() if some[1:]}
        pictures = PictureIndex(store, first, {}, str(path), again)
    elif columns.file is not None:
        files = _names(path, rows, columns.file, loose)
        findings += _several_files(path, rows, images, files, columns.file)
        index = find_pictures(config, path, files)
        name_of = dict(zip(reversed(images), reversed(files), strict=True))
        pictures = None if index is None else index.renamed(name_of)
    else:
        pictures = find_pictures(config, path, images)
        if pictures is None and columns.image is not None and features_path(config, path) is None:
            _names(path, rows, columns.image)  # nothing was found by name: none may be lacking
    return PairList(
        path=path,
        images=[images[k] for k in of_row],
        captions=captions,
        splits=None if splits is None else [splits[k] for k in of_row],
        ids=None if ids is None else [ids[k] for k in of_row],
        lines=np.array(rows.lines, np.int64)[of_row],
        rows=of_row,
        notes=tuple(notes),
        findings=findings,
        pictures=pictures,
        features=features,
        weights=None if columns.weights is None else weights_of_column(path, rows, columns.weights, per_row),
    )


def _several_files(
    path: Path, rows: TableRows, images: list[str], files: list[str], column: str
) -> tuple[Finding, ...]:
    """Ids beside which several files stand: all their captions go to the first."""
    first: dict[str, str] = {}
    other: dict[str, tuple[str, int]] = {}
    for image, file, line in zip(images, files, rows.lines, strict=True):
        if first.setdefault(image, file) != file:
            other.setdefault(image, (file, line))
    if not other:
        return ()
    image, (file, line) = next(iter(other.items()))
    stand = counted(len(other), "image id stands", "image ids stand")
    text = (
        f"{path.name}, line {line:,}: {stand} for several files (first {image!r}: {first[image]!r} and {file!r}); the"
        " first of them counts, so give every image an id of its own, or take the files for ids: --image-column"
        f" {column}"
    )
    return (Finding("ids repeat", "all", len(other), text, tuple(line for _, line in other.values())[:20]),)


def _captions(path: Path, rows: TableRows, column: str | None) -> tuple[list[str] | None, list[int]]:
    """The captions and how many each row has; a list in a row means several captions of one image."""
    if column is None:
        return None, [1] * len(rows.lines)
    captions: list[str] = []
    per_row = []
    for line, value in zip(rows.lines, rows.columns[column], strict=True):
        several = [_text_or_none(text) for text in (value if isinstance(value, list) else [value])]
        if not several or not all(text is None or isinstance(text, str) for text in several):
            raise InputError(f"{path}, line {line}: column {column!r} holds {_what(value)}; expected a caption as text")
        captions += [(text or "").strip() for text in several]
        per_row.append(len(several))
    return captions, per_row


def _what(value: Value) -> str:
    """What stands where a caption should; of a list, what is no text in it."""
    if not isinstance(value, list) or not value:
        return kind_of(value)
    return f"a list with {kind_of(next(text for text in value if not isinstance(text, str)))} in it"


def _text_or_none(value: Value) -> Value:
    """pandas writes NaN where a text is missing, and Python's JSON reads it as a number."""
    return None if isinstance(value, float) and value != value else value


def _names(path: Path, rows: TableRows, column: str, may_lack: bool = False) -> list[str]:
    """The names in a column; "" where a row has none and `may_lack` one."""
    values = zip(rows.lines, rows.columns[column], strict=True)
    return [
        "" if may_lack and not str(_text_or_none(value) or "").strip() else _name(value, path, line, column)
        for line, value in values
    ]


def _name(value: Value, path: Path, line: int, column: str) -> str:
    if value is None or isinstance(value, (list, dict, float, bool, bytes)) or not str(value).strip():
        shown = shorten(value) if value is not None and str(value).strip() else "nothing"
        raise InputError(
            f"{path}, line {line}: column {column!r} holds {shown}; expected a name or a whole number, fill it in"
        )
    return str(value).strip()
