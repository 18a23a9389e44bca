"""COCO captions: captions_train2014.json with `images` and `annotations`; a folder of them has a split in each."""

from __future__ import annotations

import os
from pathlib import Path

from mispair.data.config import DataConfig
from mispair.data.files.reading import read_json
from mispair.data.files.table_rows import Value
from mispair.data.readers.caption_json import CaptionEntry, caption_in, list_in, name_in, pairs_of_entries, value_in
from mispair.data.readers.pair_list import PairList
from mispair.data.readers.pair_list_reader import PairListReader
from mispair.data.readers.split_names import splits_in_names
from mispair.errors import InputError
from mispair.value_words import kind_of, shorten

WHAT = 'COCO captions: {"images": [{"id": ..., "file_name": ...}], "annotations": [{"image_id": ..., "caption": ...}]}'


class CocoCaptions(PairListReader):
    """A .json file, or a folder of captions_*.json."""

    def recognises(self, config: DataConfig) -> bool:
        return bool(caption_files(config))

    def read(self, config: DataConfig) -> PairList:
        return _read(config)


def caption_files(config: DataConfig) -> list[Path]:
    """The JSON files, in the order in which they are read."""
    path = Path(config.path)
    if path.suffix.lower() == ".json":
        return [path]
    if not os.path.isdir(path):
        return []
    return [path / name for name in sorted(os.listdir(path)) if name.startswith("captions_") and name.endswith(".json")]


def _read(config: DataConfig) -> PairList:
    files = caption_files(config)
    splits = splits_in_names([file.name for file in files]) if len(files) > 1 else None
    entries: list[CaptionEntry] = []
    for number, file in enumerate(files):
        entries += _entries(file, None if splits is None else splits[number])
    shown = files[0] if len(files) == 1 else Path(config.path)
    note = f"COCO captions from {', '.join(file.name for file in files[:4])}"
    return pairs_of_entries(shown, entries, config, note)


def _entries(path: Path, split: str | None) -> list[CaptionEntry]:
    content = read_json(path, WHAT)
    if isinstance(content, list):
        raise InputError(
            f"{path} is a list of records; expected {WHAT}, or one record per line:"
            f" jq -c '.[]' {path.name} > {path.stem}.jsonl"
        )
    names: dict[Value, str] = {}
    for number, image in enumerate(list_in(content, "images", str(path), WHAT)):
        where = f"{path}, image {number:,}"
        key = _image_id(value_in(image, "id", where, WHAT), f"{where}: its id")
        name = name_in(value_in(image, "file_name", where, WHAT), f"{path}: the file_name of image {shorten(key)}")
        if names.setdefault(key, name) != name:
            raise InputError(
                f"{path}: image id {shorten(key)} stands for two files, {shorten(names[key])} and {shorten(name)};"
                " expected one, so give every image an id of its own"
            )
    entries: list[CaptionEntry] = []
    for number, note in enumerate(list_in(content, "annotations", str(path), WHAT)):
        where = f"{path}, annotation {number:,}"
        shown = _image_id(value_in(note, "image_id", where, WHAT), f"{where}: its image_id")
        if shown not in names:
            raise InputError(f"{where}: image {shorten(shown)} is not among its images; add it")
        caption = caption_in(value_in(note, "caption", where, WHAT), f"{where}: the caption")
        given = note.get("id")
        pair = str(number) if given is None else name_in(given, f"{where}: the id")
        entries.append(CaptionEntry(names[shown], caption, split, pair))
    if not entries:
        raise InputError(f"{path} has no annotations; expected {WHAT}")
    return entries


def _image_id(value: Value, where: str) -> Value:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise InputError(f"{where} is {kind_of(value)}; expected a number or a name, repair it")
    return value
