"""Caption files: {split}_caps.txt, one per line, and {split}_caps.tsv, an id and a caption per row."""

from __future__ import annotations

import csv
import io
import os
from dataclasses import dataclass
from pathlib import Path

from mispair.data.files.delimited import long_fields, never_closed
from mispair.data.files.reading import read_lines
from mispair.data.source import Finding
from mispair.errors import InputError


@dataclass(frozen=True)
class CaptionFile:
    """Captions in file order. Blank lines count: the order is the only link to the images."""

    path: Path
    captions: list[str]
    ids: list[str] | None = None  # first column of a .tsv
    replaced: tuple[int, ...] = ()  # lines whose bytes were not UTF-8

    def findings(self, split: str) -> tuple[Finding, ...]:
        return not_utf8(self.path, split, self.replaced)

    @property
    def blank_tail(self) -> int:
        """Blank lines at the end: the usual reason for a count that is off by a few."""
        count = 0
        while count < len(self.captions) and not self.captions[-1 - count]:
            count += 1
        return count


def find_captions(folder: Path, split: str) -> Path:
    """The caption file of `split`; both kinds at once would be a guess."""
    files = [path for kind in ("txt", "tsv") if os.path.exists(path := folder / f"{split}_caps.{kind}")]
    if len(files) > 1:
        raise InputError(
            f"{folder} has both {files[0].name} and {files[1].name}; expected one of them, remove the other"
        )
    if not files:
        raise InputError(
            f"{folder} has no {split}_caps.txt or {split}_caps.tsv; expected the captions of {split} there"
        )
    return files[0]


def read_captions(path: Path) -> CaptionFile:
    """The captions of a .txt (one per line) or a .tsv (id, tab, caption). Raises InputError where there is none."""
    what = "captions, one per line" if path.suffix == ".txt" else "captions, an id, a tab and a caption per line"
    lines = read_lines(path, what)
    if not any(line.strip() for line in lines.lines):
        raise InputError(f"{path} holds no caption; expected {what}")
    if path.suffix == ".txt":
        return CaptionFile(path, [line.strip() for line in lines.lines], None, lines.replaced)
    ids, captions = [], []
    # The csv module's quoting, as the published reader has it: a caption may hold tabs inside double quotes.
    reader = csv.reader(io.StringIO("\n".join(lines.lines) + "\n"), delimiter="\t")
    start = 1
    with long_fields():
        try:
            for row in reader:
                start, first = reader.line_num + 1, start
                if never_closed(row):
                    raise InputError(f"{path}, line {first}: an unclosed quote; expected {what}, so close it")
                if len(row) < 2:
                    raise InputError(
                        f"{path}, line {first}: {len(row)} column; expected an id, a tab and a caption, add them"
                    )
                ids.append(row[0].strip())
                captions.append(row[1].strip())
        except csv.Error as error:
            raise InputError(
                f"{path}, line {start}: not readable ({error}); expected {what}, so look for an unclosed quote"
            ) from None
    return CaptionFile(path, captions, ids, lines.replaced)


def not_utf8(path: Path, split: str, lines: tuple[int, ...]) -> tuple[Finding, ...]:
    """What to say of `lines` that were read as Latin-1, by line number from 1; empty where there are none."""
    if not lines:
        return ()
    shown = ", ".join(f"{line:,}" for line in lines[:5]) + (" ..." if len(lines) > 5 else "")
    text = (
        f"{path.name}: bytes that are not UTF-8 in line {shown}; they are read as Latin-1, so better save it as UTF-8"
    )
    return (Finding("bytes that are not UTF-8", split, len(lines), text, lines[:20]),)
