"""Towers that were trained, in the format they came in: a folder that transformers or sentence-transformers loads.

Adapters are added to the weights they adapt. What was written is loaded by its library and compared with the run's
network before it is kept.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import normalize

from mispair.encoders.tower_inputs import TowerInputs
from mispair.errors import InputError
from mispair.models.dual import Dual
from mispair.workflows.trained_run import TrainedRun

_EQUAL = 1e-5  # how far a vector of the library may be from the network's
_CAPTIONS = ("a dog runs", "two cats sleep on the red sofa", "the beach")
_WEIGHTS = ("model", "config.json", "pytorch_model")  # what a library writes anew


def write_transformers(run: TrainedRun, folder: Path) -> None:
    """Model, tokenizer and preparation as transformers saves them."""
    model = _towers_of(run)
    inputs: TowerInputs = model.towers.inputs
    expected = _own_vectors(model, inputs)
    (network,) = model.towers.merged()
    network.save_pretrained(folder)
    for file in sorted(inputs.pictures.weights.folder.iterdir()):
        if file.is_file() and not file.name.startswith(_WEIGHTS) and not (folder / file.name).exists():
            shutil.copyfile(file, folder / file.name)
    _refuse_unlike(expected, _by_transformers(folder, inputs), "transformers")


def write_sentence_transformers(run: TrainedRun, folder: Path, scratch: Path) -> None:
    """The same as a SentenceTransformer, which encodes pictures and captions alike."""
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise InputError("sentence-transformers needs the extra 'tune': pip install 'mispair[tune]'") from None
    write_transformers(run, scratch)
    inputs: TowerInputs = _towers_of(run).towers.inputs
    expected = _by_transformers(scratch, inputs)
    made = SentenceTransformer(str(scratch), device="cpu", local_files_only=True)
    made.max_seq_length = inputs.words.most_tokens
    made.save_pretrained(str(folder), create_model_card=False)
    loaded = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    texts = inputs.words.cleaned(_CAPTIONS)
    found = [loaded.encode(_probes()), loaded.encode(texts)]
    _refuse_unlike(expected, [np.asarray(_unit(torch.from_numpy(v))) for v in found], "sentence-transformers")


def _towers_of(run: TrainedRun) -> Dual:
    model = run.models[0]
    if not isinstance(model, Dual) or model.towers is None:
        raise InputError(
            f"{run.folder} has no towers of its own: a network on features is no part of a library's checkpoint; export"
            " it --to safetensors or onnx, or train with --tune lora or full"
        )
    if len(run.models) > 1:
        raise InputError(
            f"{run.folder} scores by the mean of {len(run.models)} networks, and a checkpoint holds one; export it --to"
            " safetensors, or train a method with one network"
        )
    if not model.joint or model.images.inner is not None:
        raise InputError(
            f"{run.folder} has a head on its towers, which is no part of a library's checkpoint; export it --to"
            " safetensors, or train a joint encoder with model.hidden=0"
        )
    return model


def _probes() -> list[Any]:
    from PIL import Image

    values = np.random.default_rng(0).integers(0, 255, (3, 64, 48, 3), dtype=np.uint8)
    return [Image.fromarray(value) for value in values]


@torch.no_grad()
def _own_vectors(model: Dual, inputs: TowerInputs) -> list[NDArray[np.float32]]:
    pixels = torch.from_numpy(np.stack([inputs.pictures.prepare(probe).reshape(1, -1) for probe in _probes()]))
    rows = [torch.tensor(ids) for ids in inputs.number(_CAPTIONS)]
    ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    mask = torch.arange(ids.shape[1]) < torch.tensor([len(row) for row in rows])[:, None]
    images = model.encode_images(pixels, torch.ones(len(pixels), 1, dtype=torch.bool))
    return [model.pool_images(images).numpy(), model.pool_texts(model.encode_texts(ids, mask)).numpy()]


@torch.no_grad()
def _by_transformers(folder: Path, inputs: TowerInputs) -> list[NDArray[np.float32]]:
    """Vectors of the probes by the model in `folder`, its own tokenizer and preparation."""
    from mispair.encoders.hub import HubEncoder
    from mispair.encoders.weights import find_weights

    loaded = HubEncoder("exported", find_weights(str(folder)), precision="float32")
    pixels = np.stack([loaded.prepare(probe) for probe in _probes()])
    made = (loaded.encode_images(pixels, ("vector",)), loaded.encode_texts(_CAPTIONS, ("vector",)))
    return [np.asarray(_unit(torch.from_numpy(m["vector"].values))) for m in made]


def _unit(vectors: torch.Tensor) -> NDArray[np.float32]:
    return np.asarray(normalize(vectors.float(), dim=1).numpy())


def _refuse_unlike(expected: list[NDArray[np.float32]], found: list[NDArray[np.float32]], library: str) -> None:
    for side, own, other in zip(("pictures", "texts"), expected, found, strict=True):
        apart = float(np.abs(own - other).max())
        if not apart <= _EQUAL:
            raise InputError(
                f"{library} gives {side} vectors that are {apart:.1g} off, more than {_EQUAL:g}: not exported"
            )
