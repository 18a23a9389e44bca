"""The data an audit judged, opened again: the same pairs, or a sentence that says what differs."""

from __future__ import annotations

from dataclasses import dataclass

from mispair.auditing.embeddings import number_images
from mispair.auditing.facts import judged_config
from mispair.auditing.verdicts import Verdicts
from mispair.data.config import DataConfig
from mispair.data.files.tar_names import names_nothing
from mispair.data.identity import content_hash
from mispair.data.pair_table import PairTable
from mispair.data.readers.dispatch import list_data_splits
from mispair.data.readers.table import located
from mispair.data.source import Source
from mispair.data.splits import open_pairs
from mispair.errors import InputError
from mispair.missing_path import does_not_exist


@dataclass(frozen=True, eq=False)
class JudgedData:
    """One split as it lies on disk, and its pairs as they were judged."""

    config: DataConfig
    source: Source
    table: PairTable
    noise_hash: str | None

    @property
    def split(self) -> str:
        return self.source.split


def reopen(verdicts: Verdicts, named: DataConfig | None = None) -> JudgedData:
    """The data of an audit: where the audit says, or the data a person names.

    Raises InputError where there is none, or where it is not what was judged.
    """
    if named is not None:
        return _named(verdicts, named)
    about = verdicts.facts.data
    config = judged_config(verdicts.facts)
    if config is None:
        raise InputError(
            "this audit was made in memory and does not say where its data lies: name it with --data (data=)"
        )
    if names_nothing(config.path):
        raise InputError(
            f"{does_not_exist(config.path)}; it is what the audit judged, so name where it lies now with --data (data=)"
        )
    source, table, noise_hash = open_pairs(config, str(about.get("split")))
    if (
        len(table) != len(verdicts)
        or noise_hash != about.get("noise_hash")
        or content_hash(source) != about.get("hash")
    ):
        raise InputError(f"{config.path} has changed since the audit; audit it again before fixing it")
    return JudgedData(config, source, table, noise_hash)


def _named(verdicts: Verdicts, config: DataConfig) -> JudgedData:
    """The split of the named data that has the judged pairs, row by row."""
    config = located(config)
    splits = list_data_splits(config)
    known = str(verdicts.facts.data.get("split") or "all")
    reasons = []
    for split in dict.fromkeys(name for name in (known, "all", *splits) if name in (*splits, "all")):
        try:
            source, table, noise_hash = open_pairs(config, split)
        except InputError as error:
            reasons.append(str(error))
            continue
        reason = _differs(verdicts, table)
        if reason is None:
            return JudgedData(config, source, table, noise_hash)
        reasons.append(f"{split}: {reason}")
    raise InputError(f"{config.path} is not what was judged ({'; '.join(reasons)}); name the data of the audit")


def _differs(verdicts: Verdicts, table: PairTable) -> str | None:
    """What tells the pairs from the judged ones; None where nothing does."""
    if len(table) != len(verdicts):
        return f"it has {len(table):,} pairs, the audit {len(verdicts):,}"
    captions = verdicts.table["caption"].to_pylist()
    if table.captions is not None and any(captions):
        for row, (text, said) in enumerate(zip(table.text_rows.tolist(), captions, strict=True)):
            if table.captions[text].strip() != said.strip():
                return f"pair {row} has another caption"
    names = verdicts.table["image_id"].to_pylist()
    if table.image_ids is not None and not _numbered(names):
        for row, (image, name) in enumerate(zip(table.image_rows.tolist(), names, strict=True)):
            if table.image_ids[image] != name:
                return f"pair {row} shows another image"
    return None


def _numbered(names: list[str]) -> bool:
    """Whether images were not named but numbered when they were judged: by their first row, or in their order."""
    _, image_of, first = number_images(names)
    return any(names == [str(number) for number in numbers.tolist()] for numbers in (first[image_of], image_of))
