"""Read a data set once, all of it: what is there, and what a person should look at before training on it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mispair.data.config import DataConfig
from mispair.data.features import FeatureStore
from mispair.data.noise import read_index
from mispair.data.scan import scan_captions, scan_features
from mispair.data.source import Finding, Source
from mispair.data.sources import given_pairs, list_data_splits, open_source
from mispair.data.text import Vocabulary
from mispair.errors import InputError

Report = Callable[[str, int, int], None]  # what is being read, done, of how many


@dataclass(frozen=True)
class SideFacts:
    """The features of one side of one split."""

    name: str
    rows: int
    regions: int
    width: int
    dtype: str
    low: float
    high: float


@dataclass(frozen=True)
class SplitFacts:
    """One split in numbers."""

    split: str
    pairs: int
    images: int
    captions_per_image: tuple[int, int]  # fewest, most
    words: int = 0  # in all captions together
    longest: int = 0  # words of the longest caption
    unknown: float | None = None  # share of words the given vocabulary lacks
    sides: tuple[SideFacts, ...] = ()


@dataclass(frozen=True)
class Inspection:
    """What `mispair check` found. Data that cannot be used raises InputError instead."""

    name: str
    splits: tuple[SplitFacts, ...]
    vocabulary: int  # words that occur often enough, or the size of the given vocabulary
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()


def inspect(config: DataConfig, noise: str | None = None, report: Report | None = None) -> Inspection:
    """Every split of `config`, and the noise index and vocabulary given with it."""
    names = list_data_splits(config)
    vocabulary = Vocabulary.load(config.vocabulary) if config.vocabulary else None
    if not names:
        open_source(config, "train")  # says what is missing
        raise InputError(f"{config.path} has no split; expected train at least")
    facts, findings, notes = [], [], []
    counts: dict[str, int] = {}
    hashes: dict[str, dict[bytes, int]] = {}
    # All are opened before any is read: what cannot be used is said at once.
    sources = [open_source(config, name, _told(report, f"drawing {name}")) for name in names]
    if noise is not None:
        _check_noise(noise, sources)
    for source in sources:
        words: dict[str, int] = defaultdict(int)
        fact, found, seen = _inspect_split(source, config, vocabulary, words, report)
        facts.append(fact)
        findings += found
        notes += [note for note in source.notes if note not in notes]
        hashes[source.split] = seen
        counts = counts if facts[1:] else words  # a vocabulary is made from the first split, which is train
    findings += _shared_images(hashes)
    kept = len(vocabulary) if vocabulary else 4 + sum(count >= config.min_count for count in counts.values())
    return Inspection(sources[0].name, tuple(facts), kept if counts else 0, tuple(findings), tuple(notes))


def _inspect_split(
    source: Source, config: DataConfig, vocabulary: Vocabulary | None, words: dict[str, int], report: Report | None
) -> tuple[SplitFacts, list[Finding], dict[bytes, int]]:
    findings = list(source.findings)
    sides, seen = [], {}
    stores = ((config.sides[0], source.images), (config.sides[1], source.text_features))
    for which, (side, store) in enumerate(stores):
        if store is None:
            continue
        scanned = scan_features(store, side, source.split, _told(report, f"{source.split} {side} features"))
        findings += scanned.findings
        sides.append(_side_facts(side, store, scanned.low, scanned.high))
        if which == 0:
            seen = scanned.hashes
    total, longest, unknown = 0, 0, None
    if source.captions is not None:
        texts = scan_captions(source, vocabulary, words, _told(report, f"{source.split} captions"))
        findings += texts.findings
        total, longest = texts.words, texts.longest
        unknown = None if vocabulary is None or not total else texts.unknown / total
    counts = np.bincount(source.image_of_text, minlength=source.image_count)
    spread = (int(counts.min()), int(counts.max()))
    pairs = len(source.image_of_text)
    facts = SplitFacts(source.split, pairs, source.image_count, spread, total, longest, unknown, tuple(sides))
    return facts, findings, seen


def _side_facts(side: str, store: FeatureStore, low: float, high: float) -> SideFacts:
    return SideFacts(side, len(store), store.regions, store.width, store.array.dtype.name, low, high)


def _check_noise(path: str, sources: list[Source]) -> None:
    train = next((source for source in sources if source.split in ("train", "all")), None)
    if train is None:
        raise InputError(f"{path} is for the train split; expected one, but there is only {sources[0].split}")
    read_index(path, given_pairs(train))


def _shared_images(hashes: dict[str, dict[bytes, int]]) -> list[Finding]:
    """Images of one split that also stand in an earlier one: what is learned there is not retrieved here."""
    findings = []
    names = list(hashes)
    for k, later in enumerate(names):
        for earlier in names[:k]:
            both = sorted(hashes[later][key] for key in hashes[later].keys() & hashes[earlier].keys())
            if both:
                text = (
                    f"{len(both):,} images of {later} (first: row {both[0]:,}) are also in {earlier}; keep them in one"
                )
                findings.append(Finding("images shared between splits", later, len(both), text, tuple(both[:20])))
    return findings


def _told(report: Report | None, what: str) -> Callable[[int, int], None] | None:
    return None if report is None else lambda done, total: report(what, done, total)
