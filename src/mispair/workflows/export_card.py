"""The model card of an export: the run's own card, whose features or towers it builds on, and how to read the files."""

from __future__ import annotations

import os
from pathlib import Path

from mispair.encoders.registry import list_encoders
from mispair.encoders.tower_inputs import TowerInputs
from mispair.models.dual import Dual
from mispair.workflows.model_card import model_card
from mispair.workflows.onnx_graph import OPSET
from mispair.workflows.onnx_towers import input_names, padding
from mispair.workflows.trained_run import TrainedRun

_NOT_ESTIMATED = "- mismatched training pairs: not estimated; `mispair audit RUN` gives the rate with an interval\n"
_MOST = 100_000  # characters of a README that are looked through


def export_card(run: TrainedRun, to: str) -> str:
    """Markdown for the README of the folder."""
    card = model_card(run.config, run.metrics).rsplit("\n`mispair evaluate .`", 1)[0]
    card = card.replace("`mispair audit .`", "`mispair audit RUN`")  # this folder is no run
    rate = "" if "conclusive" in run.metrics else _NOT_ESTIMATED  # else the card says it
    return f"{card}\n{_base(run)}{rate}\n## Files\n\n{_how_to_read(run, to)}"


def licence_of(encoder: str) -> str | None:
    """The licence of the encoder of that name: of a short name, its repository, or a folder whose README says it."""
    if os.path.isdir(encoder):
        return _said_in(Path(encoder) / "README.md")
    name = encoder.partition("@")[0]
    known = {about.name: about.licence for about in list_encoders()}
    known |= {about.source.removeprefix("hub: "): about.licence for about in list_encoders()}
    return known.get(name) or None


def _said_in(readme: Path) -> str | None:
    """`license: ...` in the front matter of a model card, as the hub has it."""
    try:
        with open(readme, encoding="utf-8", errors="replace") as file:
            lines = file.read(_MOST).split("\n")
    except OSError:
        return None
    if lines[0].strip() != "---":
        return None
    for line in lines[1:]:
        key, _, value = line.partition(":")
        if line.strip() == "---":
            return None
        if key == "license":
            return "".join(c for c in value if c.isalnum() or c in "-.+ ").strip() or None
    return None


def _base(run: TrainedRun) -> str:
    """Which encoder it builds on, and under which licence; of A+B both."""
    name = run.config.data.encoder
    if name is None:
        return "- features: as they came with the data\n"
    parts = [name] if os.path.isdir(name) or "+" not in name else name.split("+", 1)
    what = "base model" if run.config.data.live else "features: pictures and captions through the encoder"
    lines = []
    for part in parts:
        licence = licence_of(part)
        known = f"licence: {licence}" if licence else "licence not known here: look it up before you share this model"
        lines.append(f"- {what} `{os.path.basename(part) if os.path.isdir(part) else part}` ({known})\n")
    return "".join(lines)


def _how_to_read(run: TrainedRun, to: str) -> str:
    words = run.vocabulary is not None
    model = run.models[0]
    towers = model.towers if isinstance(model, Dual) else None
    if to == "transformers" and towers is not None:
        return _towers_in_transformers(towers.inputs)
    if to == "sentence-transformers" and towers is not None:
        return (
            "A SentenceTransformer for pictures and captions; `mispair.json` says how it was trained."
            f"{_lower_case(towers.inputs)}\n\n"
            "```python\nfrom sentence_transformers import SentenceTransformer\n\n"
            'vectors = SentenceTransformer(".").encode(["a dog on a beach"])\n```\n'
        )
    if to == "onnx" and towers is not None:
        return _towers_as_onnx(towers.inputs)
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
    if towers is not None:
        ids, features = "ids of the pieces of the encoder's tokenizer, (items, pieces) int64", "prepared pictures"
    else:
        features = "features"
    return (
        "`model.safetensors` holds the weights, named by network; `config.json` how the networks are built and what"
        f" they read: {features} (items, parts, width) of images, and of texts {ids}.\n\n"
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


def _towers_in_transformers(inputs: TowerInputs) -> str:
    calls = ", ".join(f"{key}={value!r}" for key, value in padding(inputs).items())
    given = ", ".join(f"{name}=said[{name!r}]" for name in input_names(inputs, "texts"))
    return (
        "A checkpoint of transformers, adapters merged; `mispair.json` says how it was trained. Vectors of both sides,"
        f" brought to unit length, have cosines for products.{_lower_case(inputs)}\n\n"
        "```python\n"
        "from transformers import AutoImageProcessor, AutoModel, AutoTokenizer\n\n"
        'model, tokenizer = AutoModel.from_pretrained("."), AutoTokenizer.from_pretrained(".")\n'
        'seen = AutoImageProcessor.from_pretrained(".", backend="pil")(images=pictures, return_tensors="pt")\n'
        f'said = tokenizer(captions, {calls}, return_tensors="pt")\n'
        "images = model.get_image_features(**seen).pooler_output\n"
        f"texts = model.get_text_features({given}).pooler_output\n"
        "```\n"
    )


def _lower_case(inputs: TowerInputs) -> str:
    return " Captions are lower-cased first." if inputs.words.fills_with_padding else ""


def _towers_as_onnx(inputs: TowerInputs) -> str:
    calls = ", ".join(f"{key}={value!r}" for key, value in padding(inputs).items())
    images, texts = (", ".join(f"`{name}`" for name in input_names(inputs, side)) for side in ("images", "texts"))
    return (
        f"`images.onnx` and `texts.onnx` (opset {OPSET}), adapters merged: they take what the image processor in"
        f" `images/` ({images}) and the tokenizer in `texts/` ({texts}) of transformers make, any number of items, and"
        " give `vectors` (items, width); the products of the vectors of both sides are cosines. `mispair.json` says how"
        f" they were trained.{_lower_case(inputs)}\n\n"
        "```python\n"
        "import onnxruntime\nfrom transformers import AutoImageProcessor, AutoTokenizer\n\n"
        'processor = AutoImageProcessor.from_pretrained("images", backend="pil")\n'
        'tokenizer = AutoTokenizer.from_pretrained("texts")\n'
        f'made = tokenizer(captions, {calls}, return_tensors="np")\n'
        'session = onnxruntime.InferenceSession("texts.onnx")\n'
        "vectors = session.run(None, {one.name: made[one.name] for one in session.get_inputs()})[0]\n"
        "```\n"
    )
