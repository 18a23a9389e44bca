"""Precomputed folders whose captions are token ids instead of words, as Noise of Web (NoW) comes: 1,8,9,586,2.

Features are (N, 36, 768), one caption each; {split}_ids.txt says which page a picture shows. Each id becomes a word of
its own, so that vocabularies, audits and searches work as ever; to read them takes the tokenizer.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from mispair.data.config import DataConfig
from mispair.data.files.captions import find_captions
from mispair.data.files.reading import plain_file
from mispair.data.readers.precomp import PrecomputedFolder, list_splits
from mispair.data.source import Source
from mispair.errors import InputError
from mispair.progress import Progress

_LINE = re.compile(r"\[?\s*\d+(\s*,\s*\d+)*\s*\]?")  # with brackets in an early release
START, END = "1", "2"  # around every caption; ours are added with the vocabulary
_LOOKED_AT = 4096  # bytes of a caption file that show what it holds


class TokenIdFolder(PrecomputedFolder):
    """{split}_ims.npy with {split}_caps.txt, every line of it comma-separated numbers."""

    def recognises(self, config: DataConfig) -> bool:
        return super().recognises(config) and any(
            _holds_ids(Path(config.path) / f"{split}_caps.txt") for split in list_splits(Path(config.path))
        )

    def open(
        self, config: DataConfig, split: str, *, features: bool = True, progress: Progress | None = None
    ) -> Source:
        source = super().open(config, split, features=features, progress=progress)
        assert source.captions is not None, "a precomputed folder has captions"
        path = find_captions(Path(config.path), split)
        note = f"the captions of {split} are token ids: each number is taken for a word"
        words = [_words(path, row + 1, line) for row, line in enumerate(source.captions)]
        return replace(source, captions=words, notes=(*source.notes, note))


def framed(path: Path) -> bool:
    """Whether every caption of a file stands between `START` and `END`."""
    lines = [re.findall(r"\d+", line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return all(len(ids) > 1 and (ids[0], ids[-1]) == (START, END) for ids in lines)


def _holds_ids(path: Path) -> bool:
    """Whether the first lines are lists of numbers; one number alone may be a caption."""
    try:
        with plain_file(path, "captions").open("rb") as file:
            head = file.read(_LOOKED_AT)
    except (OSError, InputError):
        return False  # whoever opens it says what is wrong
    lines = head.decode("utf-8", "replace").splitlines()
    if len(head) == _LOOKED_AT:
        lines[-1] = lines[-1].rpartition(",")[0]  # the last number may be cut
    shown = [line for line in (line.strip() for line in lines) if line]
    return any("," in line for line in shown) and all(_LINE.fullmatch(line) for line in shown)


def _words(path: Path, line: int, caption: str) -> str:
    if caption and not _LINE.fullmatch(caption):
        raise InputError(
            f"{path}, line {line:,}: expected token ids as in the first lines (1,8,9,2), got {caption[:40]!r}"
        )
    ids = re.findall(r"\d+", caption)
    if len(ids) > 1 and (ids[0], ids[-1]) == (START, END):
        ids = ids[1:-1]
    return " ".join(ids)
