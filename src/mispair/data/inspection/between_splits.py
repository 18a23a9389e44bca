"""What only shows when splits are compared: images, ids and words they share or do not share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from mispair.counted import counted, either
from mispair.data.files.reading import some_names
from mispair.data.source import Finding, Source, of_split

MANY_RARE = 0.2  # share of the words of train below min_count worth a person's look
FEWEST_WORDS = 200  # of fewer nearly all are rare, whatever the data is like
MANY_OTHER = 0.3  # share of the words of a split that train does not have
MORE_OTHER = 0.15  # above the share that as many captions like those of train would have


def shared_images(hashes: Mapping[str, Mapping[bytes, int]]) -> list[Finding]:
    """Images of one split that also stand in an earlier one: what is learned there is not retrieved here."""
    findings = []
    names = list(hashes)
    for k, later in enumerate(names):
        for earlier in names[:k]:
            both = sorted(hashes[later][key] for key in hashes[later].keys() & hashes[earlier].keys())
            if both:
                text = (
                    f"{counted(len(both), 'image')} of {later} (first: row {both[0]:,})"
                    f" {either(len(both), 'is', 'are')} also in {earlier}; keep every image in one"
                )
                findings.append(Finding("images shared between splits", later, len(both), text, tuple(both[:20])))
    return findings


def repeated_ids(sources: Sequence[Source]) -> list[Finding]:
    """Ids that name two images of a split, or images of two splits."""
    findings = []
    homes: dict[str, str] = {}
    for source in sources:
        ids = list(source.image_ids or ())
        first: dict[str, int] = {}
        again = [k for k, name in enumerate(ids) if first.setdefault(name, k) != k]
        if again:
            text = (
                f"{of_split(source.split)}{counted(len(again), 'image id stands', 'image ids stand')} for several"
                f" images (first {ids[again[0]]!r}, images {first[ids[again[0]]]:,} and {again[0]:,}); give every"
                " image an id of its own"
            )
            findings.append(Finding("ids repeat", source.split, len(again), text, tuple(again[:20])))
        shared = [name for name in first if name in homes]
        if shared:
            text = (
                f"{counted(len(shared), 'image id')} of {source.split} (first {some_names(shared, 2)})"
                f" {either(len(shared), 'is', 'are')} also in"
                f" {homes[shared[0]]}; keep every image in one split"
            )
            findings.append(Finding("ids shared between splits", source.split, len(shared), text))
        homes.update(dict.fromkeys(first, source.split))
    return findings


def rare_words(counts: Mapping[str, int], min_count: int, split: str) -> list[Finding]:
    """Words too rare to get an id: where they are many, the captions lose most of what they say."""
    total = sum(counts.values())
    rare = [count for count in counts.values() if count < min_count]
    if total < FEWEST_WORDS or sum(rare) <= MANY_RARE * total:
        return []
    text = (
        f"{of_split(split)}{sum(rare) / total:.0%} of all words ({len(rare):,} of {len(counts):,} different ones) occur"
        f" fewer than {min_count} times and are read as one unknown word; lower data.min_count, or use a text encoder"
    )
    return [Finding("rare words", split, sum(rare), text)]


def other_words(counts: Mapping[str, Mapping[str, int]]) -> list[Finding]:
    """Splits in other words than the first one: what is learned there does not help here.

    The share of new words to expect of captions like those is that of the words which occur once there (Good and
    Turing); it is large where captions are few.
    """
    findings = []
    splits = iter(counts.items())
    first, known = next(splits, ("", {}))
    once = sum(count == 1 for count in known.values()) / max(1, sum(known.values()))
    for split, words in splits:
        total = sum(words.values())
        other = sum(count for word, count in words.items() if word not in known)
        by_chance = once + 2 * math.sqrt(once * (1 - once) / max(1, total))
        if known and total and other / total > max(MANY_OTHER, by_chance + MORE_OTHER):
            text = (
                f"{of_split(split)}{other / total:.0%} of its words do not occur in {first}; are both in one language?"
            )
            findings.append(Finding("words the first split lacks", split, other, text))
    return findings
