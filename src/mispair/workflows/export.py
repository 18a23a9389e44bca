"""`mispair export`: the networks of a finished run in a format other programs read, with a model card.

safetensors   model.safetensors (weights by network), config.json, vocabulary.json where texts are words
transformers  towers that were trained, merged, as the library saves them (`mispair.workflows.export_towers`)
sentence-transformers   the same as a SentenceTransformer
onnx          images.onnx and texts.onnx: features in, vectors out whose products are cosines; trained towers take
              prepared pictures and captions, the preparation lies beside (`mispair.workflows.onnx_towers`)
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from mispair.atomic import make_atomically, write_text
from mispair.errors import InputError
from mispair.models.base import Backbone
from mispair.models.dual import Dual
from mispair.models.own import OwnConfig
from mispair.retrieval.scoring import joined_vectors
from mispair.runtime.checkpoint import load_model
from mispair.runtime.run_folder import RunFolder
from mispair.shell_word import in_shell
from mispair.version import __version__
from mispair.workflows.export_card import export_card
from mispair.workflows.export_towers import write_sentence_transformers, write_transformers
from mispair.workflows.onnx_graph import Side, side_graph
from mispair.workflows.onnx_towers import SIDES, write_towers
from mispair.workflows.tower_probes import refuse_unlike
from mispair.workflows.trained_run import TrainedRun, load_run

Format = Literal["safetensors", "onnx", "transformers", "sentence-transformers"]
FORMATS: tuple[str, ...] = get_args(Format)


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
        raise InputError(
            f"{folder} is not finished; export it then, go on with: mispair train --resume {in_shell(folder)}"
        )
    run = load_run(begun)
    if "data" not in run.metrics:
        raise InputError(f"{folder}/metrics.json is damaged: it says nothing of the data; train the run again")
    if isinstance(run.config.model, OwnConfig):
        raise InputError(f"{folder} has a network of its own, which only your code can build: save it with your code")
    with make_atomically(out) as hidden:
        made = hidden / "export"
        made.mkdir()
        card = export_card(run, to)
        if to == "onnx":
            _write_onnx(run, made)
        elif to == "transformers":
            write_transformers(run, made)
        elif to == "sentence-transformers":
            write_sentence_transformers(run, made, hidden / "base")
        else:
            shutil.copyfile(run.files.model_file, made / "model.safetensors")
        facts = "mispair.json" if to.endswith("transformers") or (to == "onnx" and _towers(run)) else "config.json"
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
    if towers := _towers(run):
        write_towers(towers, folder)
        return
    for side in SIDES:
        path = folder / f"{side}.onnx"
        onnx.save(side_graph(run.models, side), str(path))
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        values, mask = _probe(run, side)
        vectors = session.run(None, {"values": values.numpy(), "mask": mask.numpy()})[0]
        refuse_unlike(_reference(run, side, values, mask), vectors, side, path.name)


def _towers(run: TrainedRun) -> list[Dual]:
    """The networks of a run whose towers were trained; none of others."""
    return [model for model in run.models if isinstance(model, Dual) and model.towers is not None]


def _probe(run: TrainedRun, side: Side) -> tuple[torch.Tensor, torch.Tensor]:
    """Five items with one to seven parts each."""
    rng = torch.Generator().manual_seed(0)
    model = run.models[0]
    assert isinstance(model, Backbone)  # no other has a graph
    sizes = model.sizes
    parts = 7 if side == "texts" or sizes.regions is None else min(7, sizes.regions)
    mask = torch.arange(parts) < torch.tensor([parts, 1, max(1, parts // 2), parts, 1])[:, None]
    if side == "texts" and sizes.vocabulary_size is not None:
        return torch.randint(0, sizes.vocabulary_size, (5, parts), generator=rng), mask
    width = sizes.image_width if side == "images" else sizes.text_width
    assert width is not None  # texts are words or features
    return torch.randn(5, parts, width, generator=rng), mask


def _reference(run: TrainedRun, side: Side, values: torch.Tensor, mask: torch.Tensor) -> NDArray[np.float32]:
    vectors = []
    with torch.no_grad():
        for model in run.models:
            assert isinstance(model, nn.Module)
            encoded = model.encode_images(values, mask) if side == "images" else model.encode_texts(values, mask)
            vectors.append((model.pool_images if side == "images" else model.pool_texts)(encoded))
    return joined_vectors(vectors)


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
        **{f"data_{key}": value for key, value in run.metrics["data"].items() if key.endswith("hash")},
    }
