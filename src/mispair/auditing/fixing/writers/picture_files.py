"""Pictures as files: Hugging Face image folders with a folder per split, and pictures with a .txt beside each."""

from __future__ import annotations

import io
from pathlib import Path

from mispair.auditing.fixing.judged_data import JudgedData
from mispair.auditing.fixing.slots import KEEP, Slots, WrittenPairs, slots_by_position, slots_of_row
from mispair.auditing.fixing.writers.feature_files import write_second_side, write_weights
from mispair.auditing.fixing.writers.protocol import link_or_copy, reading_options
from mispair.auditing.fixing.writers.table import link_pictures, pictures_beside
from mispair.auditing.fixing.writers.text_rows import SlotsByLine, encode_in, encoding_of, rewrite_table
from mispair.data.config import DataConfig
from mispair.data.files.picture_folder import walk_pictures
from mispair.data.files.reading import read_bytes
from mispair.data.readers.image_folder import metadata_files
from mispair.data.readers.picture_files import captions_beside, stays_inside
from mispair.data.readers.table import read_table


class ImageFolderWriter:
    """The metadata files with some rows gone or changed, and the pictures they still name."""

    weights = "weight"

    def home(self, config: DataConfig) -> Path | None:
        return Path(config.path)

    def files(self, config: DataConfig) -> list[str]:
        names = []
        for name, path in metadata_files(Path(config.path)).items():
            part = config.model_copy(update={"path": str(path)})
            names += [f"{name}/{path.name}", *(f"{name}/{place}" for place in pictures_beside(part).values())]
        return sorted(set(names))

    def write(self, data: JudgedData, pairs: WrittenPairs, out: Path) -> None:
        slots = slots_by_position(data, pairs)
        weighted = pairs.weights is not None
        first = 0
        for name, path in metadata_files(Path(data.config.path)).items():
            part = data.config.model_copy(update={"path": str(path)})
            lines = read_table(part).lines.tolist()
            left = any(slots.get(place, KEEP).keep for place in range(first, first + len(lines)))
            if left:  # a split of which nothing is left has no folder
                (out / name).mkdir()
                rewrite_table(path, part, _plan(slots, first, lines), out / name / path.name, weighted)
                link_pictures(part, out / name)
            first += len(lines)
        write_second_side(data, slots, pairs, out)

    def arguments(self, config: DataConfig, out: Path) -> list[str]:
        return [str(out), *reading_options(config, images=config.images)]


def _plan(slots: Slots, first: int, lines: list[int]) -> SlotsByLine:
    """By line of a table whose first caption is at the place `first`."""
    places: dict[int, list[int]] = {}
    for place, line in enumerate(lines, first):
        places.setdefault(line, []).append(place)
    rows = {line: slots_of_row(slots, range(some[0], some[-1] + 1)) for line, some in places.items()}
    return {line: row for line, row in rows.items() if row is not None}


class PictureFilesWriter:
    """The pictures and their captions beside them; a picture leaves with the last of its captions."""

    weights = "weights"

    def home(self, config: DataConfig) -> Path | None:
        return Path(config.path)

    def files(self, config: DataConfig) -> list[str]:
        root = Path(config.path)
        names = walk_pictures(root)
        texts = [str(path.relative_to(root)) for path in captions_beside(config, names) if path is not None]
        return [name for name in names if stays_inside(config, name)] + texts

    def write(self, data: JudgedData, pairs: WrittenPairs, out: Path) -> None:
        slots = slots_by_position(data, pairs)
        root = Path(data.config.path)
        first = 0
        names = walk_pictures(root)
        for name, text in zip(names, captions_beside(data.config, names), strict=True):
            kept = stays_inside(data.config, name)
            if text is not None:
                target = out / text.relative_to(root)
                target.parent.mkdir(parents=True, exist_ok=True)
                count, left = _rewrite_lines(text, slots, first, target)
                first += count
                kept = kept and left
            if kept:
                link_or_copy(root / name, out / name)
        write_second_side(data, slots, pairs, out)
        write_weights(slots, data.source.listed, out / f"{self.weights}.npy")

    def arguments(self, config: DataConfig, out: Path) -> list[str]:
        return [str(out), *reading_options(config)]


def _rewrite_lines(path: Path, slots: Slots, first: int, out: Path) -> tuple[int, bool]:
    """Write the captions of one picture to `out`; how many there were, and whether one is left."""
    content = read_bytes(path, "the captions of a picture")
    lines = list(io.BytesIO(content))
    full = [number for number, line in enumerate(lines) if line.decode("utf-8-sig", "replace").strip()]
    count = max(len(full), 1)
    row_slots = slots_of_row(slots, range(first, first + count))
    if row_slots is None or not any(slot.changes for slot in row_slots):
        link_or_copy(path, out)
        return count, True
    if not any(slot.keep for slot in row_slots):
        return count, False
    if not full:  # an empty caption got words
        out.write_text(f"{row_slots[0].caption or ''}\n", encoding="utf-8")
        return count, True
    slot_at = dict(zip(full, row_slots, strict=True))
    written = []
    for number, line in enumerate(lines):
        slot = slot_at.get(number)
        if slot is None or (slot.keep and slot.caption is None):
            written.append(line)
        elif slot.keep and slot.caption is not None:
            written.append(
                encode_in(encoding_of(content), " ".join(slot.caption.split()), path) + line[len(line.rstrip()) :]
            )
    out.write_bytes(b"".join(written))
    return count, True
