"""Karpathy's splits: dataset_flickr30k.json, dataset_coco.json, with images, sentences and a split each."""

from __future__ import annotations

from pathlib import Path

from mispair.data.config import DataConfig
from mispair.data.files.reading import read_json
from mispair.data.readers.caption_json import CaptionEntry, caption_in, list_in, name_in, pairs_of_entries, value_in
from mispair.data.readers.pair_list import PairList, usual_split
from mispair.data.readers.pair_list_reader import PairListReader
from mispair.errors import InputError

WHAT = 'Karpathy\'s layout: {"images": [{"filename": ..., "split": ..., "sentences": [{"raw": ...}]}]}'
_PEEKED = 1 << 18  # bytes


class KarpathySplits(PairListReader):
    """A JSON file in which every image has `sentences`."""

    def recognises(self, config: DataConfig) -> bool:
        path = Path(config.path)
        if path.suffix.lower() != ".json" or not path.is_file():
            return False
        try:
            with path.open("rb") as file:
                return b'"sentences"' in file.read(_PEEKED)
        except OSError:
            return False

    def read(self, config: DataConfig) -> PairList:
        return _read(config)


def _read(config: DataConfig) -> PairList:
    path = Path(config.path)
    content = read_json(path, WHAT)
    entries: list[CaptionEntry] = []
    for number, image in enumerate(list_in(content, "images", str(path), WHAT)):
        where = f"{path}, image {number:,}"
        file = name_in(value_in(image, "filename", where, WHAT), f"{where}: its filename")
        folder = image.get("filepath")
        name = f"{name_in(folder, f'{where}: its filepath')}/{file}" if folder else file
        split = usual_split(name_in(value_in(image, "split", where, WHAT), f"{where}: its split"))
        for place, sentence in enumerate(list_in(image, "sentences", where, WHAT)):
            caption = caption_in(
                value_in(sentence, "raw", f"{where}, sentence {place}", WHAT), f"{where}: sentence {place}"
            )
            given, default = sentence.get("sentid"), f"{number}-{place}"
            pair = default if given is None else name_in(given, f"{where}: the sentid of sentence {place}")
            entries.append(CaptionEntry(name, caption, split, pair))
    if not entries:
        raise InputError(f"{path} has no captions; expected {WHAT}")
    return pairs_of_entries(path, entries, config, f"{path.name}: Karpathy's splits, {len(entries):,} captions")
