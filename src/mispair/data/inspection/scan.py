"""One pass over features or captions of a split, and what is odd in them."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from mispair.counted import counted, either
from mispair.data.features import FeatureStore
from mispair.data.source import Finding, Source, of_split
from mispair.data.tokenizer import tokenize
from mispair.data.vocabulary import Vocabulary
from mispair.progress import Progress

MANY = 5  # different images that show one and the same caption
_BLOCK_BYTES = 64_000_000


@dataclass(frozen=True)
class FeatureScan:
    """The features of one side of one split, seen once."""

    low: float
    high: float
    hashes: dict[bytes, int]  # of each image -> its first row in the file
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class CaptionScan:
    """The captions of one split, seen once."""

    words: int  # of all captions together
    longest: int
    unknown: int  # words the given vocabulary lacks
    findings: tuple[Finding, ...]


def scan_features(store: FeatureStore, side: str, split: str, progress: Progress | None = None) -> FeatureScan:
    """Range, values that are no numbers, rows of zeros, rows that occur twice."""
    low, high = np.inf, -np.inf
    broken: list[int] = []
    empty: list[int] = []
    copies: list[int] = []
    hashes: dict[bytes, int] = {}
    size = max(1, _BLOCK_BYTES // (4 * store.regions * store.width))
    row = 0
    for block in store.blocks(size):
        flat = block.reshape(len(block), -1)
        with np.errstate(invalid="ignore"):
            least, most = flat.min(1), flat.max(1)
        finite = np.isfinite(least) & np.isfinite(most)
        if finite.any():
            low, high = min(low, float(least[finite].min())), max(high, float(most[finite].max()))
        zero = finite & (least == 0.0) & (most == 0.0)
        for k in range(len(block)):
            where = _row_in_file(store, row + k)
            if not finite[k]:
                broken.append(where)
            elif zero[k]:
                empty.append(where)
            elif hashes.setdefault(hashlib.blake2b(flat[k].data, digest_size=16).digest(), where) != where:
                copies.append(where)
        row += len(block)
        if progress:
            progress(row, len(store))
    file = store.path.name if store.path else f"{side} features"
    findings = (
        _rows("NaN or infinite features", split, file, broken, "holds", "hold", "NaN or infinity; extract again"),
        _rows(f"all-zero {side}s", split, file, empty, "holds", "hold", "only zeros; extract again or leave out"),
        _rows(f"duplicate {side}s", split, file, copies, "repeats", "repeat", "an earlier row; keep one of each"),
    )
    if low > high:
        low = high = float("nan")
    return FeatureScan(low, high, hashes, tuple(finding for finding in findings if finding is not None))


def scan_captions(
    source: Source,
    vocabulary: Vocabulary | None,
    counts: dict[str, int],
    max_words: int,
    progress: Progress | None = None,
) -> CaptionScan:
    """Words and lengths, empty and over-long captions, captions said twice or of many images.

    Args:
        counts: how often each word occurs; added to.
        max_words: longer captions are reported, since training cuts them.
    """
    known = vocabulary.ids if vocabulary else None
    places: dict[str, list[int]] = defaultdict(list)
    empty: list[int] = []
    long: list[int] = []
    words = longest = unknown = 0
    captions = source.captions or ()
    for k, caption in enumerate(captions):
        tokens = tokenize(caption)
        for token in tokens:
            counts[token] += 1
        if known is not None:
            unknown += sum(token not in known for token in tokens)
        words += len(tokens)
        longest = max(longest, len(tokens))
        if not tokens:
            empty.append(k)
            continue
        if len(tokens) > max_words:
            long.append(k)
        places[caption.lower()].append(k)
        if progress and k % 5000 == 0:
            progress(k, len(captions))
    findings = [
        _lines("empty captions", source, empty, "is", "are", "empty; write a caption or leave the pair out"),
        _lines(
            "over-long captions",
            source,
            long,
            "has",
            "have",
            f"more than {max_words} words: cut (data.max_words)",
        ),
    ]
    several = [rows for rows in places.values() if len(rows) > 1]
    images = source.image_of_text
    many = [rows for rows in several if len({int(images[k]) for k in rows}) >= MANY]
    again = sorted(k for rows in several for k in rows[1:])
    if len(places) + bool(empty) == 1 and len(captions) > 1:
        how = f"alike ({captions[0][:60]!r})" if places else "empty"
        text = f"{of_split(source.split)}all {len(captions):,} captions are {how}: nothing to learn"
        findings.append(Finding("captions all alike", source.split, len(captions), text))
    twice = sum(len(rows) - len({int(images[k]) for k in rows}) for rows in several)
    earlier = "an earlier one"
    if twice:
        earlier += " of the same image" if twice == len(again) else f" ({twice:,} of the same image)"
    findings.append(_lines("duplicate captions", source, again, "repeats", "repeat", f"{earlier}; is that meant?"))
    if many:
        most = max(many, key=len)
        shown = captions[most[0]][:60]
        text = (
            f"{counted(len(many), 'caption stands', 'captions stand')} with {MANY} images or more,"
            f" one {len(most):,} times (first: line {source.line_of(most[0]):,}, {shown!r}); a placeholder or"
            f" a failed join, so have a look"
        )
        lines = tuple(source.line_of(k) for k in most[:20])
        findings.append(Finding("captions repeated over many images", source.split, len(many), text, lines))
    return CaptionScan(words, longest, unknown, tuple(finding for finding in findings if finding is not None))


def _row_in_file(store: FeatureStore, row: int) -> int:
    return row if store.rows is None else int(store.rows[row])


def _rows(kind: str, split: str, file: str, rows: list[int], one: str, many: str, what: str) -> Finding | None:
    if not rows:
        return None
    text = f"{file}: {counted(len(rows), 'row')} ({_some(rows)}) {either(len(rows), one, many)} {what}"
    return Finding(kind, split, len(rows), text, tuple(rows[:20]))


def _lines(kind: str, source: Source, texts: list[int], one: str, many: str, what: str) -> Finding | None:
    if not texts:
        return None
    lines = [source.line_of(k) for k in texts]
    verb = either(len(lines), one, many)
    text = f"{of_split(source.split)}{counted(len(lines), 'caption')} (line {_some(lines)}) {verb} {what}"
    return Finding(kind, source.split, len(lines), text, tuple(lines[:20]))


def _some(numbers: list[int]) -> str:
    return ", ".join(f"{number:,}" for number in numbers[:5]) + (" ..." if len(numbers) > 5 else "")
