"""Hugging Face's files with pictures in their rows: a folder of Parquets, and what `datasets.save_to_disk` wrote."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mispair.auditing.fixing.chunks import sha256
from mispair.auditing.fixing.judged_data import JudgedData
from mispair.auditing.fixing.slots import Slots, WrittenPairs, slots_by_position, slots_of_row
from mispair.auditing.fixing.writers.arrow_rows import WEIGHT, Decide, rewrite_arrow, rewrite_parquet, weight_feature
from mispair.auditing.fixing.writers.feature_files import write_second_side
from mispair.auditing.fixing.writers.protocol import link_or_copy, reading_options
from mispair.auditing.fixing.writers.text_rows import RowChange
from mispair.data.config import DataConfig
from mispair.data.files.columns import Columns
from mispair.data.files.picture_column import arrow_batches
from mispair.data.files.reading import read_json
from mispair.data.readers.parquet_shards import ParquetShards, parquet_files
from mispair.data.readers.saved_dataset import SavedDataset, arrow_parts, computed
from mispair.errors import InputError

INFO, STATE = "dataset_info.json", "state.json"


class _RowSlots:
    """The slots of rows that are met one after the other, over all files."""

    def __init__(self, slots: Slots, change: RowChange) -> None:
        self._slots, self._change, self._next = slots, change, 0

    def __call__(self, row: int, values: dict[str, Any]) -> dict[str, Any] | None:
        caption = values[self._change.caption] if self._change.caption is not None else None
        count = len(caption) if isinstance(caption, list) else 1
        first, self._next = self._next, self._next + count
        return self._change(values, slots_of_row(self._slots, range(first, first + count)))


def _decide(
    data: JudgedData, pairs: WrittenPairs, columns: Columns, names: list[str]
) -> tuple[Slots, RowChange, Decide]:
    slots = slots_by_position(data, pairs)
    if pairs.weights is not None and WEIGHT in names:
        raise InputError(f"{data.config.path} has a column 'weight' already; rename it, or use --action drop")
    change = RowChange(None, columns.caption, pairs.weights is not None)
    return slots, change, _RowSlots(slots, change)


class ParquetFolderWriter:
    """The same files with some rows gone or changed. What else lies there stays: a card would count the old rows."""

    weights = "weight"

    def home(self, config: DataConfig) -> Path | None:
        return Path(config.path)

    def files(self, config: DataConfig) -> list[str]:
        return [str(path.relative_to(config.path)) for path in parquet_files(config)]

    def write(self, data: JudgedData, pairs: WrittenPairs, out: Path) -> None:
        columns, names = ParquetShards().columns(data.config)
        slots, change, decide = _decide(data, pairs, columns, names)
        root = Path(data.config.path)
        for path in parquet_files(data.config):
            target = out / path.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            rewrite_parquet(path, change.columns, decide, target, change.weighted)
        write_second_side(data, slots, pairs, out)

    def arguments(self, config: DataConfig, out: Path) -> list[str]:
        return [str(out), *_second(config, out), *reading_options(config, images=config.images)]


class SavedDatasetWriter:
    """Arrow files with some rows gone or changed, under a new fingerprint: `datasets` keeps what it computed by it."""

    weights = "weight"

    def home(self, config: DataConfig) -> Path | None:
        return Path(config.path)

    def files(self, config: DataConfig) -> list[str]:
        root = Path(config.path)
        paths = []
        for folder, folders, names in os.walk(root):
            folders.sort()
            paths += [str((Path(folder) / name).relative_to(root)) for name in names if name[0] != "."]
        return sorted(path for path in paths if not computed(path))

    def write(self, data: JudgedData, pairs: WrittenPairs, out: Path) -> None:
        columns, names = SavedDataset().columns(data.config)
        slots, change, decide = _decide(data, pairs, columns, names)
        root = Path(data.config.path)
        rewritten = set()
        for name, paths in arrow_parts(root).items():
            home = out / name
            home.mkdir(exist_ok=True)
            before = sum(batch.num_rows for path in paths for batch in arrow_batches(path))
            after = sum(
                rewrite_arrow(path, change.columns, decide, home / path.name, change.weighted) for path in paths
            )
            several = _several(paths[0], change)
            for file, correct in (
                (INFO, _corrected_info(before, after, change.weighted, several)),
                (STATE, _corrected_state(home, [path.name for path in paths])),
            ):
                if (root / name / file).is_file():
                    content = read_json(root / name / file, "what datasets.save_to_disk writes")
                    corrected = correct(content) if isinstance(content, dict) else content
                    (home / file).write_text(json.dumps(corrected, indent=2), encoding="utf-8")
                    rewritten.add(str(Path(name) / file))
            rewritten |= {str(path.relative_to(root)) for path in paths}
        for file in self.files(data.config):
            if file not in rewritten:
                link_or_copy(root / file, out / file)
        write_second_side(data, slots, pairs, out)

    def arguments(self, config: DataConfig, out: Path) -> list[str]:
        return [str(out), *_second(config, out), *reading_options(config, images=config.images)]


def _second(config: DataConfig, out: Path) -> list[str]:
    return [str(out / Path(config.second).name)] if config.second is not None and config.encoder is None else []


def _several(path: Path, change: RowChange) -> bool:
    import pyarrow.types as pt

    batches = arrow_batches(path)
    return bool(batches and change.caption and pt.is_list(batches[0].schema.field(change.caption).type))


def _corrected_info(before: int, after: int, weighted: bool, several: bool) -> Callable[[Any], Any]:
    def correct(content: Any) -> Any:
        splits = content.get("splits")
        for split in splits.values() if isinstance(splits, dict) else ():
            if isinstance(split, dict) and split.get("num_examples") == before:
                split["num_examples"] = after
        if weighted and isinstance(content.get("features"), dict):
            content["features"][WEIGHT] = weight_feature(several)
        return content

    return correct


def _corrected_state(home: Path, names: list[str]) -> Callable[[Any], Any]:
    def correct(content: Any) -> Any:
        if "_fingerprint" not in content:
            return content
        new = hashlib.sha256(str(content["_fingerprint"]).encode())
        for name in names:
            new.update(sha256(home / name).encode())
        return {**content, "_fingerprint": new.hexdigest()[:16]}

    return correct
