"""Files of captions that name pictures: COCO's and Karpathy's JSON, Flickr's .token. Ids and pictures stay."""

from __future__ import annotations

import io
import re
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from mispair.auditing.fixing.judged_data import JudgedData
from mispair.auditing.fixing.slots import KEEP, Slots, WrittenPairs, slots_by_position
from mispair.auditing.fixing.writers.feature_files import (
    feature_names,
    feature_options,
    write_features,
    write_second_side,
    write_weights,
)
from mispair.auditing.fixing.writers.json_style import dump_like
from mispair.auditing.fixing.writers.protocol import reading_options, where_found
from mispair.auditing.fixing.writers.text_rows import encode_in, encoding_of
from mispair.data.config import DataConfig
from mispair.data.files.reading import read_bytes, read_json
from mispair.data.readers.coco import WHAT as COCO
from mispair.data.readers.coco import caption_files
from mispair.data.readers.dispatch import open_pairing
from mispair.data.readers.karpathy import WHAT as KARPATHY
from mispair.data.readers.pictures_of_table import home_of_pictures
from mispair.errors import InputError


class CaptionFileWriter(ABC):
    """One file of captions, or a folder of them."""

    weights = "weights"

    def sources(self, config: DataConfig) -> list[Path]:
        """The files of captions, in the order in which they are read."""
        return [Path(config.path)]

    @abstractmethod
    def rewrite(self, path: Path, slots: Slots, first: int, out: Path) -> int:
        """Write `path` to `out`; its first caption is at the place `first`. How many captions it had."""

    def home(self, config: DataConfig) -> Path | None:
        path = Path(config.path)
        return path if path.is_dir() else path.parent

    def files(self, config: DataConfig) -> list[str]:
        return [file.name for file in self.sources(config)] + feature_names(config, Path(config.path))

    def write(self, data: JudgedData, pairs: WrittenPairs, out: Path) -> None:
        slots = slots_by_position(data, pairs)
        first = 0
        for path in self.sources(data.config):
            first += self.rewrite(path, slots, first, out / path.name)
        write_features(data, Path(data.config.path), pairs, out)
        write_second_side(data, slots, pairs, out)
        write_weights(slots, data.source.listed, out / f"{self.weights}.npy")

    def arguments(self, config: DataConfig, out: Path) -> list[str]:
        path = Path(config.path)
        here = out if path.is_dir() else out / path.name
        words = [str(here), *feature_options(config, path, here)]
        images = config.images
        if images is None:
            images = where_found(open_pairing(config, "all").pictures, home_of_pictures(path))
        return words + reading_options(config.model_copy(update={"features": None}), images=images)


class CocoWriter(CaptionFileWriter):
    """Annotations leave or show another caption; an image leaves with the last of its annotations."""

    def sources(self, config: DataConfig) -> list[Path]:
        return caption_files(config)

    def rewrite(self, path: Path, slots: Slots, first: int, out: Path) -> int:
        content = read_json(path, COCO)
        given = content["annotations"]
        kept = []
        for number, note in enumerate(given):
            slot = slots.get(first + number, KEEP)
            if slot.keep:
                kept.append(note if slot.caption is None else {**note, "caption": slot.caption})
        before, left = {note["image_id"] for note in given}, {note["image_id"] for note in kept}
        images = [image for image in content["images"] if image["id"] in left or image["id"] not in before]
        if kept:  # a split of which nothing is left has no file
            out.write_bytes(dump_like({**content, "images": images, "annotations": kept}, path.read_bytes()))
        return len(given)


class KarpathyWriter(CaptionFileWriter):
    """Sentences leave or show other words; an image leaves with the last of its sentences."""

    def rewrite(self, path: Path, slots: Slots, first: int, out: Path) -> int:
        content = read_json(path, KARPATHY)
        images = []
        place = first
        for image in content["images"]:
            image_slots = [slots.get(place + k, KEEP) for k in range(len(image["sentences"]))]
            place += len(image_slots)
            if not any(slot.changes for slot in image_slots):
                images.append(image)
                continue
            said = zip(image["sentences"], image_slots, strict=True)
            kept = [_sentence(sentence, slot.caption) for sentence, slot in said if slot.keep]
            if kept:
                ids = image.get("sentids")
                fits = isinstance(ids, list) and len(ids) == len(image_slots)
                some = [one for one, slot in zip(ids or (), image_slots, strict=False) if slot.keep]
                images.append({**image, "sentences": kept, **({"sentids": some} if fits else {})})
        out.write_bytes(dump_like({**content, "images": images}, path.read_bytes()))
        return place - first


def _sentence(sentence: dict[str, Any], caption: str | None) -> dict[str, Any]:
    if caption is None:
        return sentence
    words = {"tokens": re.findall(r"\w+", caption.lower())} if "tokens" in sentence else {}
    return {**sentence, **words, "raw": caption}


class TokenWriter(CaptionFileWriter):
    """Lines leave or show another caption; the number after # stays, it is the caption's name."""

    def rewrite(self, path: Path, slots: Slots, first: int, out: Path) -> int:
        written: list[bytes] = []
        place = first
        content = read_bytes(path, "captions as Flickr has them")
        encoding = encoding_of(content)
        for line in io.BytesIO(content):
            if not line.decode(errors="replace").strip("\ufeff \r\n\t\v\f"):
                written.append(line)
                continue
            slot = slots.get(place, KEEP)
            place += 1
            if slot.caption is not None:
                if "\n" in slot.caption or "\r" in slot.caption:
                    raise InputError(f"{path}: a caption of several lines ({slot.caption[:40]!r}) has no place in it")
                name, _, old = line.partition(b"\t")
                line = name + b"\t" + encode_in(encoding, slot.caption, path) + old[len(old.rstrip()) :]
            if slot.keep:
                written.append(line)
        out.write_bytes(b"".join(written))
        return place - first
