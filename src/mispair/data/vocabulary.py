"""Captions as numbers: the vocabulary, in the published JSON layout, and the word ids of every caption.

Letters: M captions, B rows taken, L words of the longest one taken, <start> and <end> included.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mispair.data.files.reading import read_json
from mispair.data.tokenizer import tokenize
from mispair.errors import InputError
from mispair.value_words import shorten

SPECIAL = ("<pad>", "<start>", "<end>", "<unk>")  # their ids are 0..3 in every published file
PAD, START, END, UNK = range(4)
_WHAT = 'a vocabulary: {"word2idx": {word: id}, "idx2word": {"id": word}, "idx": size}'


@dataclass(frozen=True)
class Vocabulary:
    """Words by id; the first four are `SPECIAL`."""

    words: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def ids(self) -> dict[str, int]:
        return {word: k for k, word in enumerate(self.words)}

    @property
    def content_hash(self) -> str:
        """SHA-256 of the words in their order: which word has which number."""
        return hashlib.sha256("\n".join(self.words).encode(errors="surrogatepass")).hexdigest()

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Ids of one caption with <start> and <end>; a word that is not listed becomes <unk>."""
        get = self.ids.get
        return [START, *(get(token, UNK) for token in tokens), END]

    @classmethod
    def build(cls, captions: Iterable[str], min_count: int = 4) -> Vocabulary:
        """The words that occur at least `min_count` times, most frequent first, then by spelling."""
        counts = Counter(chain.from_iterable(map(tokenize, captions)))
        kept = sorted((-count, word) for word, count in counts.items() if count >= min_count and word not in SPECIAL)
        return cls((*SPECIAL, *(word for _, word in kept)))

    def to_json(self) -> str:
        """The published layout; ids in `idx2word` are strings, as JSON makes them."""
        by_id = {str(k): word for k, word in enumerate(self.words)}
        return json.dumps({"word2idx": self.ids, "idx2word": by_id, "idx": len(self.words)})

    def save(self, path: str | os.PathLike[str]) -> None:
        Path(path).write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Vocabulary:
        """A published or saved vocabulary, its ids unchanged."""
        return cls(_check_words(read_json(path, _WHAT), path))


@dataclass(frozen=True, eq=False)
class TokenStore:
    """The word ids of M captions in one flat array."""

    flat: NDArray[np.int32]  # all ids, caption after caption
    offsets: NDArray[np.int64]  # (M + 1,) where each caption starts
    kinds: int = 0  # ids lie below this
    truncated: int = 0  # captions cut to the longest length allowed

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(M,) words of each caption, <start> and <end> included."""
        return np.diff(self.offsets)

    def longest(self, rows: NDArray[np.int64]) -> int:
        """The most words any of these captions has."""
        return int((self.offsets[rows + 1] - self.offsets[rows]).max(initial=0))

    @classmethod
    def encode(cls, captions: Sequence[str], vocabulary: Vocabulary, max_words: int) -> TokenStore:
        """Tokenise and number all captions; of a longer one the first `max_words` words are kept."""
        get = vocabulary.ids.get
        rows: list[list[int]] = []
        truncated = 0
        for caption in captions:
            words = tokenize(caption)
            if len(words) > max_words:
                truncated += 1
                del words[max_words:]
            rows.append([START, *[get(word, UNK) for word in words], END])
        return replace(cls.of_ids(rows, len(vocabulary)), truncated=truncated)

    @classmethod
    def of_ids(cls, rows: Sequence[Sequence[int]], kinds: int) -> TokenStore:
        """Captions that have numbers already, all below `kinds`."""
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        return cls(np.fromiter(chain.from_iterable(rows), np.int32, int(offsets[-1])), offsets, kinds)

    def take(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """rows (B,) -> ids (B, L) with <pad> behind the shorter ones, and their mask (B, L)."""
        rows = np.asarray(rows, np.int64)
        if rows.size and (rows.min() < 0 or rows.max() >= len(self)):
            raise IndexError(f"rows must lie in 0..{len(self) - 1}, got {rows.min()}..{rows.max()}")
        starts = self.offsets[rows]
        lengths = self.offsets[rows + 1] - starts
        places = np.arange(lengths.max(initial=0))
        mask = places < lengths[:, None]
        ids = np.zeros(mask.shape, np.int64)
        ids[mask] = self.flat[(starts[:, None] + places)[mask]]
        return ids, mask


def _check_words(content: Any, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """The words by id, once both directions of the file are known to agree."""
    word2idx = content.get("word2idx") if isinstance(content, dict) else None
    if not isinstance(word2idx, dict) or not word2idx:
        raise InputError(f"{path} has no 'word2idx' table; expected {_WHAT}")
    words: list[str | None] = [None] * len(word2idx)
    for word, number in word2idx.items():
        if type(number) is not int or not 0 <= number < len(words) or words[number] is not None:
            raise InputError(
                f"{path}, word {shorten(word)} has id {shorten(number)}; expected each of 0..{len(words) - 1} once, so"
                " build it again"
            )
        words[number] = word
    missing = [word for word in SPECIAL if word not in word2idx]
    if missing:
        raise InputError(
            f"{path} has no {missing[0]}; expected the ids 0..3 to be {' '.join(SPECIAL)}, so build it again"
        )
    if tuple(words[:4]) != SPECIAL:
        raise InputError(
            f"{path}: the ids 0..3 are {' '.join(map(str, words[:4]))}; expected {' '.join(SPECIAL)}, so build it again"
        )
    listed = content.get("idx2word", {})
    if not isinstance(listed, dict):
        raise InputError(f"{path}: 'idx2word' is not a table; expected {_WHAT}")
    for key, word in listed.items():
        if not (key.isdecimal() and len(key) < 12 and int(key) < len(words) and words[int(key)] == word):
            raise InputError(
                f"{path}: 'idx2word' says {shorten(key)} is {shorten(word)}, 'word2idx' disagrees; build it again"
            )
    return tuple(word for word in words if word is not None)
