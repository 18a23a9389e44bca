"""Splits that file and folder names say: train-00000.tar, validation/, captions_val2014.json."""

from __future__ import annotations

import re

from mispair.data.readers.pair_list import usual_split

_NAMED = re.compile(r"(?:^|[^a-z])(training|train|restval|validation|valid|val|dev|testing|test)(?=$|[^a-z])", re.I)


def split_in_name(name: str) -> str | None:
    """The split a file or folder name mentions; None where it mentions none, or two."""
    named = {usual_split(word) for word in _NAMED.findall(name)}
    return named.pop() if len(named) == 1 else None


def splits_in_names(names: list[str]) -> list[str] | None:
    """The split of each name; None where one of them says none."""
    splits = [split_in_name(name) for name in names]
    return [split for split in splits if split is not None] if all(splits) else None
