"""What the readers of caption JSON share: texts that are texts, and entries to a list of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mispair.data.config import DataConfig
from mispair.data.files.json_lines import is_text
from mispair.data.files.table_rows import Value
from mispair.data.readers.pair_list import PairList
from mispair.data.readers.pictures_of_table import find_pictures
from mispair.errors import InputError
from mispair.value_words import kind_of


@dataclass(frozen=True, slots=True)
class CaptionEntry:
    """One caption as a JSON file has it."""

    image: str  # file name of the picture, with folders where the file gives them
    caption: str
    split: str | None
    id: str


def value_in(holder: Value, key: str, where: str, wanted: str) -> Value:
    """The value of a key in a JSON file. Raises InputError, from `where` on, where it is not there."""
    if not isinstance(holder, dict):
        raise InputError(f"{where} is {kind_of(holder)}; expected {wanted}")
    if key not in holder:
        raise InputError(f'{where} has no "{key}"; expected {wanted}')
    return holder[key]


def list_in(holder: Value, key: str, where: str, wanted: str) -> list[Value]:
    """The list under a key in a JSON file. Raises InputError, from `where` on, where it is none."""
    value = value_in(holder, key, where, wanted)
    if not isinstance(value, list):
        raise InputError(f'{where}: its "{key}" is {kind_of(value)}; expected {wanted}')
    return value


def caption_in(value: Value, where: str) -> str:
    """A caption of a JSON file; one that is null says nothing. Raises InputError, from `where` on, for no text."""
    return "" if value is None else _text(value, where, "a caption as text").strip()


def name_in(value: Value, where: str) -> str:
    """The name of a picture or of a caption in a JSON file. Raises InputError, from `where` on, where it is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    name = _text(value, where, "a name")
    if not name.strip():
        raise InputError(f"{where} is empty; expected a name, fill it in")
    return name


def _text(value: Value, where: str, wanted: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"{where} holds {kind_of(value)}; expected {wanted}, repair it")
    if not is_text(value):
        raise InputError(f"{where} holds half of a character (a lone surrogate); expected whole ones, repair it")
    return value


def pairs_of_entries(path: Path, entries: list[CaptionEntry], config: DataConfig, note: str) -> PairList:
    """The entries as a list of pairs, with their pictures where those are found."""
    images = [entry.image for entry in entries]
    rows = np.arange(len(entries))
    splits = [entry.split for entry in entries if entry.split is not None]
    return PairList(
        path=path,
        images=images,
        captions=[entry.caption for entry in entries],
        splits=splits if len(splits) == len(entries) else None,
        ids=[entry.id for entry in entries],
        lines=rows + 1,
        rows=rows,
        notes=(note,),
        pictures=find_pictures(config, path, images),
    )
