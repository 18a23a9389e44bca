"""One pass over the pictures of a split: kinds, sizes, which are broken, which are the same file."""

from __future__ import annotations

import hashlib
import io
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from mispair.counted import counted, either
from mispair.data.picture_store import Pictures
from mispair.data.source import Finding, of_split
from mispair.pictures.decode import Broken, decode, formats, quiet

_SMALL = 32  # pixels; a JPEG is decoded at a fraction of its size, which reads all of the file


@dataclass(frozen=True)
class PictureFacts:
    """The pictures of one split in numbers."""

    pictures: int
    kinds: dict[str, int]  # jpeg, png, ... of those that can be opened
    smallest: int  # shorter side of the smallest picture, pixels
    largest: int  # longer side of the largest
    broken: int


@dataclass(frozen=True)
class PictureScan:
    """`PictureFacts`, and what a person should look at."""

    facts: PictureFacts
    broken: dict[str, str]  # the name of each picture that cannot be decoded, and why
    hashes: dict[bytes, int]  # of each file -> its first row
    findings: tuple[Finding, ...]


def scan_pictures(pictures: Pictures, split: str, progress: Callable[[int, int], None] | None = None) -> PictureScan:
    """Read and decode every picture once; none is kept."""
    kinds: Counter[str] = Counter()
    sides: list[int] = []
    broken: list[tuple[int, str]] = []
    copies: list[int] = []
    several: list[int] = []
    hashes: dict[bytes, int] = {}
    with quiet():
        for row in range(len(pictures)):
            data = pictures.read(row)
            seen = _examine(data)
            if isinstance(seen, Broken):
                broken.append((row, seen.reason))
            else:
                kind, width, height = seen
                kinds[kind] += 1
                sides = [min([width, height, *sides]), max([width, height, *sides])]
                assert isinstance(data, bytes)
                key = hashlib.blake2b(data, digest_size=16).digest()
                if hashes.setdefault(key, row) != row:
                    copies.append(row)
                if any(isinstance(other, bytes) and other != data for other in pictures.read_again(row)):
                    several.append(row)
            if progress:
                progress(row + 1, len(pictures))
    smallest, largest = sides or [0, 0]
    facts = PictureFacts(len(pictures), dict(kinds.most_common()), smallest, largest, len(broken))
    findings = []
    if broken:
        reasons = Counter(reason for _, reason in broken).most_common(3)
        shown = ", ".join(f"{count:,} {reason}" for reason, count in reasons)
        names = ", ".join(repr(pictures.names[row]) for row, _ in broken[:3])
        said = counted(len(broken), "picture is", "pictures are")
        text = f"{of_split(split)}{said} broken ({shown}), first {names}; replace or remove"
        findings.append(Finding("broken pictures", split, len(broken), text, tuple(row for row, _ in broken[:20])))
    if copies:
        names = ", ".join(repr(pictures.names[row]) for row in copies[:3])
        copied = either(len(copies), "is a copy of an earlier one", "are copies of earlier ones")
        text = f"{of_split(split)}{counted(len(copies), 'picture')} ({names}) {copied}; keep one of each"
        findings.append(Finding("duplicate pictures", split, len(copies), text, tuple(copies[:20])))
    if several:
        stand = counted(len(several), "image id stands", "image ids stand")
        text = (
            f"{of_split(split)}{stand} for several pictures (first {pictures.names[several[0]]!r}); the first of them"
            " counts, so give every picture a name of its own, or name another column with --image-column"
        )
        findings.append(Finding("ids repeat", split, len(several), text, tuple(several[:20])))
    names_of_broken = {pictures.names[row]: reason for row, reason in broken}
    return PictureScan(facts, names_of_broken, hashes, tuple(findings))


def _examine(data: bytes | Broken) -> tuple[str, int, int] | Broken:
    """Kind, width and height of a picture, once all of it could be decoded."""
    from PIL import Image

    if isinstance(data, Broken):
        return data
    decoded = decode(data, _SMALL)
    if isinstance(decoded, Broken):
        return decoded
    with Image.open(io.BytesIO(data), formats=formats()) as picture:
        return str(picture.format).lower(), *picture.size
