"""Precomputed folders, and the generated scenes as one: features, captions and ids of a split."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mispair.auditing.fixing.judged_data import JudgedData
from mispair.auditing.fixing.slots import WrittenPairs
from mispair.auditing.fixing.writers.feature_files import write_rows
from mispair.auditing.fixing.writers.protocol import save_array
from mispair.data.config import DataConfig
from mispair.data.files.captions import find_captions
from mispair.data.files.image_of import ENDING as IMAGE_OF
from mispair.data.pair_table import PairTable
from mispair.data.readers.dispatch import given_pairs, list_data_splits, open_source
from mispair.data.readers.precomp import ENDINGS
from mispair.data.readers.token_ids import END, START, framed
from mispair.data.source import Source


class PrecomputedWriter:
    """Every image is written once: its identity, which training uses, does not get lost."""

    weights = "weights"

    def home(self, config: DataConfig) -> Path | None:
        return Path(config.path)

    def files(self, config: DataConfig) -> list[str]:
        folder = Path(config.path)
        return sorted(file.name for file in folder.iterdir() if file.is_file() and not file.name.startswith("."))

    def write(self, data: JudgedData, pairs: WrittenPairs, out: Path) -> None:
        folder, split = Path(data.config.path), data.split
        captions = find_captions(folder, split).name
        features = next(name for end in ENDINGS if (folder / (name := f"{split}{end}")).exists())
        ids = f"{split}_ids.txt"
        own = {captions, features, ids, f"{Path(features).stem}_lens.npy", f"{split}_weights.npy", f"{split}{IMAGE_OF}"}
        for name in self.files(data.config):
            if name not in own:
                shutil.copyfile(folder / name, out / name)
        _write_split(data.source, data.table, pairs, out, captions, features, with_ids=(folder / ids).exists())

    def arguments(self, config: DataConfig, out: Path) -> list[str]:
        return [str(out)]


class TokenIdWriter(PrecomputedWriter):
    """Captions go back as comma-separated ids, between the marks of start and end where they came so."""

    def write(self, data: JudgedData, pairs: WrittenPairs, out: Path) -> None:
        super().write(data, pairs, out)
        original = find_captions(Path(data.config.path), data.split)
        around = ((START,), (END,)) if framed(original) else ((), ())
        written = out / original.name
        lines = [[*around[0], *line.split(), *around[1]] for line in written.read_text(encoding="utf-8").splitlines()]
        written.write_text("".join(f"{','.join(ids)}\n" for ids in lines), encoding="utf-8")


class ScenesWriter(PrecomputedWriter):
    """Generated data has no files: it becomes a precomputed folder of all its splits."""

    def home(self, config: DataConfig) -> Path | None:
        return None

    def write(self, data: JudgedData, pairs: WrittenPairs, out: Path) -> None:
        for split in list_data_splits(data.config):
            if split == data.split:
                _write_split(data.source, data.table, pairs, out)
            else:
                other = open_source(data.config, split)
                table = given_pairs(other)
                _write_split(other, table, WrittenPairs(table.pair_ids, table.image_rows, table.text_rows), out)


def write_identity(images: NDArray[np.int64], path: Path) -> NDArray[np.int64]:
    """The distinct images, (I,), in the order in which they appear; `path` says whose each text is.

    Where every image has equally many texts in a row, counting says it and the file is not needed.
    """
    starts = np.flatnonzero(np.append(True, images[1:] != images[:-1]))
    lengths = np.diff(np.append(starts, len(images)))
    distinct, first, place = np.unique(images, return_index=True, return_inverse=True)
    if (lengths == lengths[0]).all() and len(starts) == len(distinct):
        return images[starts]
    order = np.argsort(first)
    new_row = np.empty(len(distinct), np.int64)
    new_row[order] = np.arange(len(distinct))
    save_array(path, new_row[place])
    return distinct[order]


def _write_split(
    source: Source,
    table: PairTable,
    pairs: WrittenPairs,
    out: Path,
    captions: str | None = None,
    features: str | None = None,
    with_ids: bool = True,
) -> None:
    assert source.images is not None
    assert table.captions is not None
    rows = write_identity(pairs.images, out / f"{source.split}{IMAGE_OF}")
    write_rows(source.images, rows, out / (features or f"{source.split}_ims.npy"))
    names = table.image_ids
    texts = [table.captions[row] for row in pairs.texts.tolist()]
    target = out / (captions or f"{source.split}_caps.txt")
    if target.suffix == ".tsv":
        ids = [str(row) if names is None else names[row] for row in pairs.images.tolist()]
        with target.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, delimiter="\t", lineterminator="\n").writerows(zip(ids, texts, strict=True))
    else:
        target.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    if names is not None and with_ids:
        listed = "".join(f"{names[row]}\n" for row in rows.tolist())
        (out / f"{source.split}_ids.txt").write_text(listed, encoding="utf-8")
    if pairs.weights is not None:
        save_array(out / f"{source.split}_weights.npy", pairs.weights.astype(np.float32))
