"""Read a data set once, all of it: what is there, and what a person should look at before training on it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from mispair.counted import counted
from mispair.data.config import DataConfig
from mispair.data.features import FeatureStore
from mispair.data.inspection.agreement import check_agreement
from mispair.data.inspection.between_splits import other_words, rare_words, repeated_ids, shared_images
from mispair.data.inspection.scan import scan_captions, scan_features
from mispair.data.inspection.scan_pictures import PictureFacts, scan_pictures
from mispair.data.noise import read_index
from mispair.data.readers.dispatch import given_pairs, list_data_splits, open_source
from mispair.data.source import FEWEST, Finding, Source
from mispair.data.vocabulary import Vocabulary
from mispair.errors import InputError
from mispair.progress import Progress, Tell


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
    pictures: PictureFacts | None = None
    unusable: dict[str, str] = field(default_factory=dict)  # every picture that is missing or broken, and why


@dataclass(frozen=True)
class Inspection:
    """A data set in numbers, and what to look at. Data that cannot be used raises InputError instead."""

    name: str
    splits: tuple[SplitFacts, ...]
    vocabulary: int  # words that occur often enough, or the size of the given vocabulary
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()


def check_data(config: DataConfig, noise: str | None = None, report: Tell | None = None) -> Inspection:
    """Every split of `config`, and the noise index and vocabulary given with it.

    Raises:
        InputError: data that cannot be used: unreadable files, splits that do not fit together.
    """
    names = list_data_splits(config)
    vocabulary = Vocabulary.load(config.vocabulary) if config.vocabulary else None
    if not names:
        open_source(config, "train")  # says what is missing
        raise InputError(f"{config.path} has no split; expected train at least")
    facts: list[SplitFacts] = []
    findings: list[Finding] = []
    notes: list[str] = []
    counts: dict[str, dict[str, int]] = {}
    hashes: dict[str, dict[bytes, int]] = {}
    # All are opened before any is read: what cannot be used is said at once.
    sources = [open_source(config, name, _progress_of(report, f"drawing {name}")) for name in names]
    findings += _agreement(sources, config)
    if noise is not None:
        _check_noise(noise, sources)
    for source in sources:
        counts[source.split] = defaultdict(int)
        fact, in_split, seen = _check_split(source, config, vocabulary, counts[source.split], report)
        facts.append(fact)
        findings += in_split
        notes += source.notes
        hashes[source.split] = seen
    findings += shared_images(hashes) + repeated_ids(sources)
    train = counts[names[0]]  # a vocabulary is made from the first split, which is train
    if vocabulary is None:
        rare = rare_words(train, config.min_count, names[0])
        if _read_by_an_encoder(sources):
            notes += [
                f"{found.text.rpartition('; ')[0]} where words are learned (--texts words, --cells); otherwise the"
                " encoder of the pictures reads captions whole"
                for found in rare
            ]
        else:
            findings += rare
    findings += other_words(counts)
    if names == ["all"] and sources[0].captions is not None:
        dev, test = config.holdout
        notes.append(f"there are no splits: training holds out {dev:.0%} of the images as dev and {test:.0%} as test")
    elif "train" in names and "dev" not in names:
        findings.append(_no_dev(config))
    if facts[0].pairs < FEWEST:
        notes.append(f"{counted(facts[0].pairs, 'pair')} to learn from: training and audits need at least {FEWEST}")
    kept = len(vocabulary) if vocabulary else 4 + sum(count >= config.min_count for count in train.values())
    once = {finding.text: finding for finding in findings}  # what concerns a whole file is told by each of its splits
    words = kept if any(counts.values()) else 0
    return Inspection(sources[0].name, tuple(facts), words, tuple(once.values()), tuple(dict.fromkeys(notes)))


def _read_by_an_encoder(sources: list[Source]) -> bool:
    """Whether training would read these captions as an encoder's vectors: those of raw pictures."""
    return all(source.images is None and source.pictures is not None for source in sources)


def _agreement(sources: list[Source], config: DataConfig) -> list[Finding]:
    images = {source.split: source.images for source in sources if source.images is not None}
    texts = {source.split: source.text_features for source in sources if source.text_features is not None}
    return check_agreement(images, config.sides[0]) + check_agreement(texts, config.sides[1])


def _no_dev(config: DataConfig) -> Finding:
    text = (
        f"{config.path} has no dev split, and training chooses its best epoch on one; move some images of train into"
        " dev_ims.npy and dev_caps.txt"
    )
    return Finding("no dev split", "dev", 1, text)


def _check_split(
    source: Source, config: DataConfig, vocabulary: Vocabulary | None, words: dict[str, int], report: Tell | None
) -> tuple[SplitFacts, list[Finding], dict[bytes, int]]:
    findings = list(source.findings)
    sides, seen = [], {}
    stores = ((config.sides[0], source.images), (config.sides[1], source.text_features))
    for which, (side, store) in enumerate(stores):
        if store is None:
            continue
        scanned = scan_features(store, side, source.split, _progress_of(report, f"{source.split} {side} features"))
        findings += scanned.findings
        sides.append(_side_facts(side, store, scanned.low, scanned.high))
        if which == 0:
            seen = scanned.hashes
    drawn: PictureFacts | None = None
    unusable = dict(source.no_picture)
    if source.images is None and source.pictures is not None:
        looked = scan_pictures(source.pictures, source.split, _progress_of(report, f"{source.split} pictures"))
        findings += looked.findings
        drawn, seen = looked.facts, looked.hashes
        unusable |= looked.broken
    total, longest, unknown = 0, 0, None
    if source.captions is not None:
        texts = scan_captions(
            source, vocabulary, words, config.max_words, _progress_of(report, f"{source.split} captions")
        )
        findings += texts.findings
        total, longest = texts.words, texts.longest
        unknown = None if vocabulary is None or not total else texts.unknown / total
    counts = np.bincount(source.image_of_text, minlength=source.image_count)
    spread = (int(counts.min()), int(counts.max()))
    pairs = len(source.image_of_text)
    facts = SplitFacts(
        source.split, pairs, source.image_count, spread, total, longest, unknown, tuple(sides), drawn, unusable
    )
    return facts, findings, seen


def _side_facts(side: str, store: FeatureStore, low: float, high: float) -> SideFacts:
    return SideFacts(side, len(store), store.regions, store.width, store.array.dtype.name, low, high)


def _check_noise(path: str, sources: list[Source]) -> None:
    train = next((source for source in sources if source.split in ("train", "all")), None)
    if train is None:
        raise InputError(f"{path} is for the train split; expected one, but there is only {sources[0].split}")
    read_index(path, given_pairs(train))


def _progress_of(report: Tell | None, what: str) -> Progress | None:
    return None if report is None else lambda done, total: report(what, done, total)
