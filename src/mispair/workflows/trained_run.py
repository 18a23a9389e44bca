"""TrainedRun: a run folder as something to work with. It encodes, scores, evaluates and is audited."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mispair.config.load import load_config
from mispair.config.schema import RunConfig
from mispair.data import DataConfig, PairData, open_split
from mispair.data.collate import gather
from mispair.data.features import FeatureStore
from mispair.data.prepared_pictures import PreparedPictures
from mispair.data.vocabulary import TokenStore, Vocabulary
from mispair.errors import InputError
from mispair.pictures.given import is_picture, picture_bytes
from mispair.protocols import RetrievalModel
from mispair.retrieval.evaluate import RecallEvaluator
from mispair.retrieval.scoring import (
    Precision,
    encode_images,
    encode_texts,
    joined_vectors,
    read_batches,
    score_grid,
)
from mispair.runtime.run_folder import RunFolder
from mispair.shell_word import in_shell
from mispair.types import Encoded
from mispair.workflows.best_models import load_models
from mispair.workflows.networks import Network
from mispair.workflows.raw_inputs import caption_vectors, picture_features, pieces_of_captions, reads_captions


@dataclass(frozen=True, eq=False)
class EncodedItems:
    """Images or texts as every network of a run encodes them; `run.score` takes them."""

    parts: tuple[Encoded, ...] = field(repr=False)  # one per network, (N, T, D)
    vectors: NDArray[np.float32] = field(repr=False)  # (N, D) unit vectors; products of the two sides rank roughly

    def __len__(self) -> int:
        return len(self.vectors)

    def __repr__(self) -> str:
        return f"EncodedItems({len(self):,} items, vectors {self.vectors.shape})"


@dataclass(frozen=True, eq=False)
class TrainedRun:
    """The best networks of a run with its configuration and words; what `mispair.train` and `mispair.load` return.

    Example:
        >>> run = mp.load("runs/a")
        >>> run.score(features, ["a dog on a beach", "two cats"]).argmax(1)
    """

    files: RunFolder = field(repr=False)
    config: RunConfig = field(repr=False)
    vocabulary: Vocabulary | None = field(repr=False)
    models: list[RetrievalModel] = field(repr=False)
    about: dict[str, str] = field(repr=False)  # what the model file says of itself
    network: Network | None = field(default=None, repr=False)  # a network of the user's own

    @property
    def folder(self) -> Path:
        return self.files.path

    @property
    def folders(self) -> tuple[Path, ...]:
        """Where its networks come from."""
        return (self.folder,)

    @property
    def model_files(self) -> tuple[Path, ...]:
        return (self.files.model_file,)

    @property
    def finished(self) -> bool:
        return self.files.finished

    @property
    def metrics(self) -> dict[str, Any]:
        """The summary of the finished run: dev, test, mismatch_rate, cost, ...; empty before its end."""
        return self.files.summary

    @property
    def history(self) -> list[dict[str, Any]]:
        """One entry per epoch: epoch, lr, seconds, train (what the method logged), dev (recalls)."""
        return self.files.epochs()

    def __repr__(self) -> str:
        config, epochs = self.config, len(self.history)
        state = "finished" if self.finished else f"not finished, {epochs} of {config.train.epochs} epochs"
        reached = self.metrics.get("test") or self.metrics.get("dev") or {}
        rsum = f", rSum {reached['rsum']:.1f}" if "rsum" in reached else ""
        return f"TrainedRun({str(self.folder)!r}: {config.method.name} on {config.model.name}, {state}{rsum})"

    @property
    def reads_words(self) -> bool:
        """Whether it can be given captions as strings."""
        return self.vocabulary is not None or reads_captions(self.config.data)

    def unfinished_note(self) -> str | None:
        """A sentence for whoever uses a run that is not finished; None for one that is."""
        if self.finished:
            return None
        return (
            f"{self.folder} is not finished: {len(self.history)} of {self.config.train.epochs} epochs; these are the "
            f"networks of its best epoch so far (go on with: mispair train --resume {in_shell(self.folder)})"
        )

    def open_split(self, split: str, data: DataConfig | None = None) -> PairData:
        """A split of the run's data, or of other data, in the run's words."""
        return open_split(data or self.config.data, split, vocabulary=self.vocabulary)

    def encode_images(self, features: Any) -> EncodedItems:
        """Encode images.

        Args:
            features: (n, F) one vector per image or (n, R, F) regions, an array or a tensor of the width the run was
                trained on; or a `FeatureStore`, such as `PairData.images`; or pictures, one or a list, as paths, bytes
                of files or PIL pictures, where the run was trained on an encoder's features.
        """
        if isinstance(features, str) or is_picture(features):
            features = [features]
        first = features[0] if isinstance(features, (list, tuple)) and features else None
        if isinstance(first, str) or is_picture(first):
            features = picture_features(self.config.data, [picture_bytes(one) for one in features])
        return self._encode(_store(features, "features"), "images")

    def encode_text(self, texts: Any) -> EncodedItems:
        """`encode_texts`, by the name that other encoders have for it."""
        return self.encode_texts(texts)

    def encode_texts(self, texts: Any) -> EncodedItems:
        """Encode texts.

        Args:
            texts: captions as strings, a list or a column of any library, where the run was trained on words or on an
                encoder's vectors of captions, else features (n, F') or (n, L, F').
        """
        texts = _rows([texts] if isinstance(texts, str) else texts)
        if not len(texts):
            raise InputError("texts holds nothing to encode; expected at least one")
        if isinstance(texts, FeatureStore | PreparedPictures) or not isinstance(texts[0], str):
            if self.vocabulary is not None:
                raise InputError(f"{self.folder} was trained on captions: give strings, not features")
            return self._encode(_store(texts, "texts"), "texts")
        captions = [str(text) for text in texts]
        if self.config.data.live:
            return self._encode(TokenStore.of_ids(pieces_of_captions(self.config.data, captions), 0), "texts")
        if self.vocabulary is None:
            if not reads_captions(self.config.data):
                raise InputError(f"{self.folder} was trained on features of its second side: give those, not captions")
            return self._encode(_store(caption_vectors(self.config.data, captions), "texts"), "texts")
        return self._encode(TokenStore.encode(captions, self.vocabulary, self.config.data.max_words), "texts")

    def score(self, images: Any, texts: Any) -> NDArray[np.float32]:
        """The score of every image with every text, (n, m); larger fits better.

        Args:
            images: what `encode_images` takes or gives.
            texts: what `encode_texts` takes or gives.
        """
        seen = images if isinstance(images, EncodedItems) else self.encode_images(images)
        read = texts if isinstance(texts, EncodedItems) else self.encode_texts(texts)
        return np.asarray(score_grid(self.models, seen.parts, read.parts).cpu().numpy())

    def evaluate(
        self,
        split: str = "test",
        *,
        data: str | os.PathLike[str] | DataConfig | None = None,
        folds: int | None = None,
        shortlist: int | None = None,
        precision: Precision = "fp32",
    ) -> dict[str, float]:
        """Recall@1, 5 and 10 both ways in percent and their sum, `rsum`.

        Args:
            split: which split of the run's data, or of `data`, to rank.
            data: other data, as in `mispair.evaluate`.
            folds: average over so many equal galleries (COCO 1K: 5).
            shortlist: score only so many candidates per query with the full model.
            precision: fp32, or bf16 where the processor has it.
        """
        from mispair.workflows.other_data import other_data

        opened = self.open_split(split, None if data is None else other_data(self, data))
        return RecallEvaluator(opened, folds, shortlist=shortlist, precision=precision)(self.models)

    def _encode(self, store: FeatureStore | PreparedPictures | TokenStore, side: str) -> EncodedItems:
        encode = encode_images if side == "images" else encode_texts
        parts, vectors = [], []
        for model in self.models:
            encoded = encode(model, read_batches(model, partial(gather, store), np.arange(len(store))))
            parts.append(encoded)
            with torch.no_grad():
                vectors.append((model.pool_images if side == "images" else model.pool_texts)(encoded))
        return EncodedItems(tuple(parts), joined_vectors(vectors))


def load_run(
    folder: str | Path | RunFolder, device: torch.device | None = None, network: Network | None = None
) -> TrainedRun:
    """The best networks of the run in `folder`, in evaluation mode."""
    run = folder if isinstance(folder, RunFolder) else RunFolder(Path(folder))
    run.refuse_unless_begun()
    config = load_config(run.config_file)
    if not run.model_file.exists():
        raise InputError(
            f"{run.path} has no model yet: it was stopped before its first epoch was done; go on with: "
            f"mispair train --resume {in_shell(run.path)}"
        )
    models, about = load_models(run, config, network, device)
    vocabulary = run.vocabulary
    _refuse_other_words(run, vocabulary, about)
    return TrainedRun(run, config, vocabulary, models, about, network)


def _refuse_other_words(run: RunFolder, vocabulary: Vocabulary | None, about: dict[str, str]) -> None:
    words = "none" if vocabulary is None else vocabulary.content_hash
    if about.get("vocabulary", words) != words:
        raise InputError(
            f"{run.vocabulary_file} is not the vocabulary {run.model_file.name} was trained with; copy the folder anew"
        )


def _rows(texts: Any) -> Any:
    """Texts or features by their position; a column of another library may have an index of its own."""
    if isinstance(texts, FeatureStore | PreparedPictures | Tensor):
        return texts
    if hasattr(texts, "to_pylist"):  # pyarrow
        return texts.to_pylist()
    if hasattr(texts, "__array__") and np.ndim(texts):
        return np.asarray(texts)
    try:
        return list(texts)
    except TypeError:
        raise InputError(f"texts must be captions or features, got {type(texts).__name__}") from None


def _store(values: Any, name: str) -> FeatureStore | PreparedPictures:
    if isinstance(values, FeatureStore | PreparedPictures):
        return values
    if isinstance(values, Tensor):
        values = values.detach().cpu().numpy()
    try:
        array = np.asarray(values, np.float32)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers, (n, width) or (n, regions, width)") from None
    if array.ndim not in (2, 3):
        raise InputError(f"{name} must have shape (n, width) or (n, regions, width), got {array.shape}")
    if not array.size:
        raise InputError(f"{name} holds nothing to encode; expected at least one")
    wrong = np.flatnonzero(~np.isfinite(array).reshape(len(array), -1).all(1))
    if wrong.size:
        raise InputError(f"{name} must be finite, but row {wrong[0]} holds NaN or infinity")
    return FeatureStore(array)
