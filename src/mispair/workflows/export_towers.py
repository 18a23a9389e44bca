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
from mispair.workflows.tower_probes import CAPTIONS, own_vectors, pictures, refuse_unlike
from mispair.workflows.trained_run import TrainedRun

_SIDES = ("pictures", "texts")
_WEIGHTS = ("model", "config.json", "pytorch_model")  # what a library writes anew


def write_transformers(run: TrainedRun, folder: Path) -> None:
    """Model, tokenizer and preparation as transformers saves them."""
    model = _towers_of(run)
    inputs: TowerInputs = model.towers.inputs
    expected = own_vectors([model], inputs)
    (network,) = model.towers.merged()
    network.save_pretrained(folder)
    for file in sorted(inputs.pictures.weights.folder.iterdir()):
        if file.is_file() and not file.name.startswith(_WEIGHTS) and not (folder / file.name).exists():
            shutil.copyfile(file, folder / file.name)
    for side, own, other in zip(_SIDES, expected, _by_transformers(folder, inputs), strict=True):
        refuse_unlike(own, other, side, "transformers")


def write_sentence_transformers(run: TrainedRun, folder: Path, scratch: Path) -> None:
    """The same as a SentenceTransformer, which encodes pictures and captions alike."""
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise InputError(
            "--to sentence-transformers needs that library: pip install 'sentence-transformers>=6,<7'"
        ) from None
    write_transformers(run, scratch)
    inputs: TowerInputs = _towers_of(run).towers.inputs
    expected = _by_transformers(scratch, inputs)
    made = SentenceTransformer(str(scratch), device="cpu", local_files_only=True)
    made.max_seq_length = inputs.words.most_tokens
    reader: Any = made[0]
    reader.processing_kwargs = _as_trained(inputs, reader.processor)
    made.save_pretrained(str(folder), create_model_card=False)
    loaded = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    texts = inputs.words.cleaned(CAPTIONS)
    theirs = [loaded.encode(pictures()), loaded.encode(texts)]
    for side, own, other in zip(_SIDES, expected, theirs, strict=True):
        refuse_unlike(own, _unit(torch.from_numpy(other)), side, "sentence-transformers")


def _as_trained(inputs: TowerInputs, processor: Any) -> dict[str, dict[str, Any]]:
    """What that library must be told where its own way differs: SigLIP's texts are filled up and read padding and all,
    and SigLIP 2's pictures are cut by the defaults of its processor, not by what lies in the folder."""
    told: dict[str, dict[str, Any]] = {}
    if inputs.words.fills_with_padding:
        most = inputs.words.most_tokens
        told["text"] = {"padding": "max_length", "max_length": most, "return_attention_mask": False}
    cut = getattr(processor, "image_processor", None)
    sizes = {name: getattr(cut, name) for name in ("patch_size", "max_num_patches") if hasattr(cut, name)}
    return told | {"image": sizes} if sizes else told


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
            " onnx or safetensors, or train a method with one network"
        )
    if not model.joint or model.images.inner is not None:
        raise InputError(
            f"{run.folder} has a head on its towers, which is no part of a library's checkpoint; export it --to"
            " onnx or safetensors, or train a joint encoder with model.hidden=0"
        )
    return model


@torch.no_grad()
def _by_transformers(folder: Path, inputs: TowerInputs) -> list[NDArray[np.float32]]:
    """Vectors of the probes by the model in `folder`, its own tokenizer and preparation."""
    from mispair.encoders.hub import HubEncoder
    from mispair.encoders.weights import find_weights

    loaded = HubEncoder("exported", find_weights(str(folder)), precision="float32")
    pixels = np.stack([loaded.prepare(probe) for probe in pictures()])
    made = (loaded.encode_images(pixels, ("vector",)), loaded.encode_texts(CAPTIONS, ("vector",)))
    return [np.asarray(_unit(torch.from_numpy(m["vector"].values))) for m in made]


def _unit(vectors: torch.Tensor) -> NDArray[np.float32]:
    return np.asarray(normalize(vectors.float(), dim=1).numpy())
