"""`mispair export`: the networks of a finished run in a format other programs read, with a model card.

safetensors   model.safetensors (weights by network), config.json, vocabulary.json where texts are words
transformers  towers that were trained, merged, as the library saves them (`mispair.workflows.export_towers`)
sentence-transformers   the same as a SentenceTransformer
onnx          images.onnx and texts.onnx: features in, vectors out whose products are cosines; the other files beside
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import nn

from mispair.atomic import make_atomically, write_text
from mispair.encoders.registry import list_encoders
from mispair.errors import InputError
from mispair.models.own import OwnConfig
from mispair.runtime.checkpoint import load_model
from mispair.runtime.run_folder import RunFolder
from mispair.version import __version__
from mispair.workflows.export_towers import write_sentence_transformers, write_transformers
from mispair.workflows.model_card import model_card
from mispair.workflows.onnx_graph import OPSET, Side, side_graph
from mispair.workflows.trained_run import TrainedRun, load_run

Format = Literal["safetensors", "onnx", "transformers", "sentence-transformers"]
FORMATS: tuple[str, ...] = get_args(Format)
_EQUAL = 1e-5  # how far a vector of the exported graph may be from the network's


def export(folder: Path, out: Path, to: str) -> Path:
    """Write the best networks of the run `folder` into the new folder `out`; it is there whole or not at all.

    Raises:
        InputError: no such format; the run is not finished, or its network cannot be written so; `out` exists; an extra
            is missing.
    """
    if to not in FORMATS:
        raise InputError(f"there is no format {to!r} to export to; the formats are {', '.join(FORMATS)}")
    begun = RunFolder(folder)
    begun.refuse_unless_begun()
    if not begun.finished:
        raise InputError(f"{folder} is not finished; export it then, go on with: mispair train --resume {folder}")
    run = load_run(begun)
    if isinstance(run.config.model, OwnConfig):
        raise InputError(f"{folder} has a network of its own, which only your code can build: save it with your code")
    with make_atomically(out) as hidden:
        made = hidden / "export"
        made.mkdir()
        card = _card(run, to)
        if to == "onnx":
            _write_onnx(run, made)
        elif to == "transformers":
            write_transformers(run, made)
        elif to == "sentence-transformers":
            write_sentence_transformers(run, made, hidden / "base")
        else:
            shutil.copyfile(run.files.model_file, made / "model.safetensors")
        facts = "mispair.json" if to.endswith("transformers") else "config.json"
        write_text(made / facts, json.dumps(_facts(run), indent=2) + "\n")
        if run.vocabulary is not None:
            write_text(made / "vocabulary.json", run.vocabulary.to_json())
        write_text(made / "README.md", card)
        os.rename(made, out)
    return out


def _write_onnx(run: TrainedRun, folder: Path) -> None:
    """Both sides; each is run once by onnxruntime and compared with the networks before it is kept."""
    try:
        import onnx
        import onnxruntime
    except ImportError:
        raise InputError("ONNX needs the extra 'export': pip install 'mispair[export]'") from None
    sides: tuple[Side, Side] = ("images", "texts")
    for side in sides:
        path = folder / f"{side}.onnx"
        onnx.save(side_graph(run.models, side), str(path))
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        values, mask = _probe(run, side)
        found = session.run(None, {"values": values.numpy(), "mask": mask.numpy()})[0]
        apart = float(np.abs(found - _reference(run, side, values, mask)).max())
        if not apart <= _EQUAL:
            raise InputError(f"{side}.onnx gives vectors that are {apart:.1g} off, more than {_EQUAL:g}: not exported")


def _probe(run: TrainedRun, side: Side) -> tuple[torch.Tensor, torch.Tensor]:
    """Five items with one to seven parts each."""
    rng = torch.Generator().manual_seed(0)
    sizes = run.models[0].sizes  # type: ignore[attr-defined]
    parts = 7 if side == "texts" or sizes.regions is None else min(7, sizes.regions)
    mask = torch.arange(parts) < torch.tensor([parts, 1, max(1, parts // 2), parts, 1])[:, None]
    if side == "texts" and sizes.vocabulary_size is not None:
        return torch.randint(0, sizes.vocabulary_size, (5, parts), generator=rng), mask
    width = sizes.image_width if side == "images" else sizes.text_width
    return torch.randn(5, parts, width, generator=rng), mask


def _reference(run: TrainedRun, side: Side, values: torch.Tensor, mask: torch.Tensor) -> Any:
    vectors = []
    with torch.no_grad():
        for model in run.models:
            assert isinstance(model, nn.Module)
            encoded = model.encode_images(values, mask) if side == "images" else model.encode_texts(values, mask)
            vectors.append((model.pool_images if side == "images" else model.pool_texts)(encoded).float().cpu())
    return (torch.cat(vectors, 1) / len(vectors) ** 0.5).numpy()


def _facts(run: TrainedRun) -> dict[str, Any]:
    """What somebody needs to build and feed the networks."""
    data = run.config.data
    return {
        "mispair": __version__,
        "model": run.config.model.model_dump(mode="json"),
        "sizes": json.loads(run.about["sizes"]),
        "networks": list(load_model(run.files.model_file)[0]),
        "sides": list(data.sides),
        "encoder": data.encoder,
        "cells": data.cells,
        "texts": "words" if run.vocabulary is not None else "vectors",
        "max_words": data.max_words,
        "data_hash": run.metrics["data"]["hash"],
    }


def _card(run: TrainedRun, to: str) -> str:
    card = model_card(run.config, run.metrics).rsplit("\n`mispair evaluate .`", 1)[0]
    rate = run.metrics.get("mismatch_rate")
    estimated = "" if rate is None else f"- mismatched training pairs, as the method itself estimates: {rate:.1%}\n"
    return f"{card}\n{_base(run)}{estimated}\n## Files\n\n{_how_to_read(run, to)}"


def _base(run: TrainedRun) -> str:
    """Where the features come from, and under which licence."""
    name = run.config.data.encoder
    if name is None:
        return "- features: as they came with the data\n"
    licence = next((about.licence for about in list_encoders() if about.name == name and about.licence), None)
    known = f"licence: {licence}" if licence else "look up its licence before you share this model"
    return f"- features: pictures and captions through the encoder `{name}` ({known})\n"


def _how_to_read(run: TrainedRun, to: str) -> str:
    words = run.vocabulary is not None
    if to == "transformers":
        return (
            "A checkpoint of transformers, adapters merged; `mispair.json` says how it was trained.\n\n"
            "```python\nfrom transformers import AutoModel, AutoProcessor\n\n"
            'model, processor = AutoModel.from_pretrained("."), AutoProcessor.from_pretrained(".")\n```\n'
        )
    if to == "sentence-transformers":
        return (
            "A SentenceTransformer for pictures and captions; `mispair.json` says how it was trained.\n\n"
            "```python\nfrom sentence_transformers import SentenceTransformer\n\n"
            'vectors = SentenceTransformer(".").encode(["a dog on a beach"])\n```\n'
        )
    ids = "word ids of `vocabulary.json`, (items, words) int64" if words else "vectors, (items, parts, width) float32"
    if to == "onnx":
        return (
            f"`images.onnx` and `texts.onnx` (opset {OPSET}) take `values` and `mask` (items, parts), bool, real parts"
            " first, and give `vectors` (items, width); the products of the vectors of both sides are cosines. `values`"
            f" are features (items, parts, width) float32 of images, and of texts {ids}.\n\n"
            "```python\n"
            "import numpy as np\nimport onnxruntime\n\n"
            'session = onnxruntime.InferenceSession("images.onnx")\n'
            'vectors = session.run(None, {"values": features[:, None], "mask": np.ones((len(features), 1), bool)})[0]\n'
            "```\n"
        )
    return (
        "`model.safetensors` holds the weights, named by network; `config.json` how the networks are built and what"
        f" they read: features (items, parts, width) of images, and of texts {ids}.\n\n"
        "```python\n"
        "import json\n\nfrom safetensors.torch import load_file\n\n"
        "from mispair.models import MODELS, InputSizes, build_model\n\n"
        'facts, weights = json.load(open("config.json")), load_file("model.safetensors")\n'
        'name = facts["networks"][0]\n'
        'model = build_model(MODELS.parse(facts["model"]), InputSizes(**facts["sizes"]))\n'
        'own = {key.removeprefix(f"{name}."): value for key, value in weights.items() if key.startswith(f"{name}.")}\n'
        "model.load_state_dict(own)\n"
        "```\n"
    )
