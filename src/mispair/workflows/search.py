"""Asking an index with what made it: a run, or an encoder alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from mispair.data import DataConfig, PairData
from mispair.data.tokenizer import tokenize
from mispair.data.vocabulary import UNK
from mispair.encoders.protocol import Encoder
from mispair.encoders.registry import open_encoder
from mispair.errors import InputError
from mispair.searching.index import MANIFEST, Index
from mispair.searching.query import TextQuery
from mispair.workflows.index_encoder import joint_pictures, joint_texts
from mispair.workflows.index_run import model_hash
from mispair.workflows.joined_runs import join_runs
from mispair.workflows.raw_inputs import picture_features
from mispair.workflows.trained_run import TrainedRun, load_run

Vector = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class RunQueries:
    """A trained run as something an index can be asked with."""

    run: TrainedRun
    model: str
    index: Index = field(repr=False)

    @property
    def data(self) -> DataConfig:
        """What was indexed."""
        return data_of(self.index) or self.run.config.data

    @property
    def reads_words(self) -> bool:
        """Whether it can be asked by words."""
        return self.run.reads_words

    @cached_property
    def opened(self) -> dict[str, PairData]:
        """The splits that were indexed, in order: features for a finer score."""
        return {split: self.run.open_split(split, self.data) for split in self.index.metadata.distinct("split")}

    def encode_text(self, text: str) -> TextQuery:
        """A vector, and the words that were never seen in training."""
        unknown, known = self.unknown(text), self._known(text)
        if self.run.vocabulary is not None and not any(map(str.isalnum, known)):
            return TextQuery(np.zeros(1, np.float32), unknown)
        return TextQuery(self.run.encode_texts([known]).vectors[0], unknown)

    def _known(self, text: str) -> str:
        """The text without the words that were never seen in training: at no stage do they count."""
        if self.run.vocabulary is None:
            return text
        unknown = self.unknown(text)
        return " ".join(word for word in tokenize(text) if word not in unknown)

    def unknown(self, text: str) -> tuple[str, ...]:
        """Words that were never seen in training; none where an encoder reads the captions."""
        vocabulary = self.run.vocabulary
        if vocabulary is None:
            return ()
        words = tokenize(text)
        ids = vocabulary.encode(words)[1 : len(words) + 1]
        never = (word for word, number in zip(words, ids, strict=True) if number == UNK)
        return tuple(dict.fromkeys(word for word in never if any(map(str.isalnum, word))))

    def encode_picture(self, data: bytes) -> Vector:
        if self.run.config.data.encoder is None:
            raise InputError("this run was trained on features: it cannot read a picture; search by words or by a pair")
        seen = self.run.encode_images(picture_features(self.run.config.data, [data]))
        return np.asarray(seen.vectors[0], np.float32)

    def rerank(self, text: str, rows: NDArray[np.int64]) -> Vector | None:
        """Scores of the whole model for the pictures of some pairs."""
        if not self.reads_words:
            return None
        images = self.index.image_of[rows]
        scores = np.empty(len(rows), np.float32)
        offset = 0
        texts = self.run.encode_texts([self._known(text)])
        for part in self.opened.values():
            mine = (images >= offset) & (images < offset + len(part.images))
            if mine.any():
                scores[mine] = self.run.score(part.images.subset(images[mine] - offset), texts)[:, 0]
            offset += len(part.images)
        return scores

    def rerank_texts(self, of: int | bytes, texts: Sequence[str]) -> Vector | None:
        """(n,) scores of the whole model for some captions with the picture of a pair, or with a picture file."""
        if not self.reads_words:
            return None
        if isinstance(of, int):
            return self.score_texts(of, texts)
        return np.asarray(self.run.score(picture_features(self.run.config.data, [of]), list(texts))[0])

    def score_texts(self, pair: int, texts: Sequence[str]) -> Vector:
        """(n,) scores of some texts with the picture of a pair."""
        image, offset = int(self.index.image_of[pair]), 0
        for part in self.opened.values():
            if image < offset + len(part.images):
                return np.asarray(self.run.score(part.images.subset(np.array([image - offset])), list(texts))[0])
            offset += len(part.images)
        raise InputError(f"the data behind {self.index.folder} has changed: pair {pair} is not there; index it again")

    def score_pictures(self, pictures: Sequence[bytes], text: str) -> Vector | None:
        """(n,) scores of a text with some picture files; None where the run reads features only."""
        if self.run.config.data.encoder is None:
            return None
        return self.run.score(picture_features(self.run.config.data, pictures), [text])[:, 0]


@dataclass(frozen=True, eq=False)
class EncoderQueries:
    """An encoder with one space for pictures and texts as something an index can be asked with."""

    encoder: Encoder = field(repr=False)
    index: Index = field(repr=False)

    @property
    def model(self) -> str:
        return self.encoder.fingerprint

    @property
    def data(self) -> DataConfig:
        """What was indexed."""
        config = data_of(self.index)
        if config is None:
            raise InputError(f"{self.index.folder} does not say what data it was made from; make the index again")
        return config

    @property
    def reads_words(self) -> bool:
        """It has one space for pictures and texts."""
        return True

    def encode_text(self, text: str) -> TextQuery:
        return TextQuery(self._texts([text])[0])

    def unknown(self, text: str) -> tuple[str, ...]:
        """None: an encoder reads any word."""
        return ()

    def encode_picture(self, data: bytes) -> Vector:
        return np.asarray(self._pictures([data])[0])

    def rerank(self, text: str, rows: NDArray[np.int64]) -> Vector | None:
        """None: the vectors say all."""
        return None

    def rerank_texts(self, of: int | bytes, texts: Sequence[str]) -> Vector | None:
        """None: the vectors say all."""
        return None

    def score_texts(self, pair: int, texts: Sequence[str]) -> Vector:
        """(n,) scores of some texts with the picture of a pair."""
        return np.asarray(self._texts(texts) @ np.asarray(self.index.vectors["images"][pair], np.float32))

    def score_pictures(self, pictures: Sequence[bytes], text: str) -> Vector | None:
        """(n,) scores of a text with some picture files."""
        return np.asarray(self._pictures(pictures) @ self._texts([text])[0])

    def _texts(self, texts: Sequence[str]) -> Vector:
        assert self.index.centre is not None
        return joint_texts(self.encoder, texts, self.index.centre[1])

    def _pictures(self, pictures: Sequence[bytes]) -> Vector:
        assert self.index.centre is not None
        return joint_pictures(self.encoder, pictures, self.index.centre[0])


IndexQueries = RunQueries | EncoderQueries


def encoder_of(index: Index) -> IndexQueries:
    """The run or the encoder behind an index, refused where its model is not the one that made it."""
    name = index.manifest.encoder
    if name is not None:
        encoder = open_encoder(name)
        _refuse_other(index, encoder.fingerprint, f"the encoder {name} is", f"mispair index DATA --encoder {name}")
        return EncoderQueries(encoder, index)
    places = [_place(index, Path(folder)) for folder in (index.manifest.source, *index.manifest.joined)]
    run = join_runs([load_run(place) for place in places])
    model, said = model_hash(run), [str(place) for place in places]
    _refuse_other(index, model, f"{' and '.join(said)} hold{'s' * (len(said) == 1)}", f"mispair index {' '.join(said)}")
    return RunQueries(run, model, index)


def _place(index: Index, folder: Path) -> Path:
    """Where a run behind an index is: where it was, or moved together with the index."""
    for place in (folder, index.folder / "run", index.folder.parent / folder.name):
        if place.is_dir():
            return place
    raise InputError(f"the run {folder} behind {index.folder} is not there any more; search by --pair, or index again")


def _refuse_other(index: Index, model: str, what: str, again: str) -> None:
    if model != index.manifest.model:
        raise InputError(
            f"{index.folder} was made with another model than {what} now; make it again: {again} -o {index.folder}"
        )


def data_of(index: Index) -> DataConfig | None:
    """The data an index was made from, where it says so."""
    if index.manifest.config is None:
        return None
    try:
        return DataConfig.model_validate(index.manifest.config)
    except ValidationError:
        raise InputError(
            f"{index.folder / MANIFEST} names its data in a way mispair does not know; make the index again"
        ) from None
