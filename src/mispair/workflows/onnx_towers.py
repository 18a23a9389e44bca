"""Towers that were trained as ONNX: one graph per side, from what the encoder's own preparation gives to vectors.

`images.onnx` takes what the image processor in `images/` makes of pictures, `texts.onnx` what the tokenizer in `texts/`
makes of captions, by the library's names; both give `vectors` (items, width) whose products are cosines, of several
networks their mean. Adapters are merged, heads are part of the graph. Any number of items; texts as long as the
tokenizer makes them, up to what the tower takes.

The graphs are traced (`torch.onnx.export(dynamo=False)`), which needs nothing but torch and onnx. The exporter by
torch.export gives the same vectors with one dependency more, but writes the loop SigLIP 2 has over the pictures of a
batch for one size of batch only; here `mispair.encoders.siglip2_positions` stands for that loop.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import normalize

from mispair.encoders.siglip2_positions import resized_together
from mispair.encoders.tower_inputs import TowerInputs
from mispair.errors import InputError
from mispair.models.dual import Dual
from mispair.workflows.onnx_graph import OPSET, Side
from mispair.workflows.tower_probes import CAPTIONS, own_vectors, pictures, refuse_unlike

SIDES: tuple[Side, Side] = ("images", "texts")


def write_towers(models: Sequence[Dual], folder: Path) -> None:
    """Both graphs and the preparation of both sides; each is run by onnxruntime before it is kept.

    Raises InputError where a graph cannot be made, or does not give the vectors of the networks.
    """
    inputs: TowerInputs = models[0].towers.inputs
    expected = own_vectors(models, inputs)
    for model in models:
        model.towers.merged()
    inputs.pictures.processor.save_pretrained(folder / "images")
    inputs.words.tokenizer.save_pretrained(folder / "texts")
    for side, vectors in zip(SIDES, expected, strict=True):
        path, network = folder / f"{side}.onnx", _TowerSide(models, side).eval()
        given = _given(inputs, side)
        _trace(network, _some(inputs, side, given, 2), path, inputs.name)
        for count in (1, len(vectors)):
            traced = _run(path, _some(inputs, side, given, count))
            refuse_unlike(vectors[:count], traced, side, f"{path.name} by onnxruntime")


def input_names(inputs: TowerInputs, side: Side) -> tuple[str, ...]:
    """What the graph of a side takes, by the library's names."""
    if side == "texts":
        return ("input_ids",) if inputs.words.fills_with_padding else ("input_ids", "attention_mask")
    patches = ("pixel_values", "pixel_attention_mask", "spatial_shapes")
    return patches if inputs.pictures.family == "siglip2" else patches[:1]


class _TowerSide(nn.Module):
    """One side of networks whose mean score ranks."""

    def __init__(self, models: Sequence[Dual], side: Side) -> None:
        super().__init__()
        self.duals, self.side = tuple(models), side
        self.parts = nn.ModuleList(models)  # whose weights the graph holds
        self.names = input_names(models[0].towers.inputs, side)

    def forward(self, *given: Tensor) -> Tensor:
        named = dict(zip(self.names, given, strict=True))
        units = [normalize(self._vectors(model, named), dim=-1) for model in self.duals]
        return units[0] if len(units) == 1 else torch.cat(units, 1) * len(units) ** -0.5

    def _vectors(self, model: Dual, named: dict[str, Tensor]) -> Tensor:
        if self.side == "texts":
            read: Tensor = model.texts(model.towers.read_words(named))
            return read
        pixels = named["pixel_values"]
        if len(named) > 1:  # as `HubEncoder.prepare` lays patches out
            real = named["pixel_attention_mask"][..., None].to(pixels.dtype)
            grid = named["spatial_shapes"][:, None].to(pixels.dtype).expand(-1, pixels.shape[1], -1)
            pixels = torch.cat([pixels, real, grid], -1)
        seen: Tensor = model.images(model.towers.see(pixels))
        return seen


def _given(inputs: TowerInputs, side: Side) -> dict[str, NDArray[Any]]:
    """The probes as the library prepares them."""
    if side == "images":
        made = inputs.pictures.processor(images=pictures(), return_tensors="np")
    else:
        words = inputs.words
        made = words.tokenizer(words.cleaned(CAPTIONS), return_tensors="np", **padding(inputs))
    return {name: np.asarray(made[name]) for name in input_names(inputs, side)}


def padding(inputs: TowerInputs) -> dict[str, Any]:
    """The arguments of the tokenizer that lead to the lengths the towers were trained on."""
    words = inputs.words
    return {
        "padding": "max_length" if words.fills_with_padding else True,
        "truncation": True,
        "max_length": words.most_tokens,
    }


def _some(inputs: TowerInputs, side: Side, given: dict[str, NDArray[Any]], count: int) -> dict[str, NDArray[Any]]:
    """The first probes; texts no longer than they must be where the tokenizer pads to the longest."""
    some = {name: values[:count] for name, values in given.items()}
    if side == "images" or inputs.words.fills_with_padding:
        return some
    real = some["attention_mask"].any(0)
    return {name: values[:, real] for name, values in some.items()}


def _trace(network: _TowerSide, given: dict[str, NDArray[Any]], path: Path, encoder: str) -> None:
    axes = {name: {0: "items"} for name in (*given, "vectors")}
    if "attention_mask" in given:
        axes |= {name: {0: "items", 1: "pieces"} for name in given}
    arguments = tuple(torch.from_numpy(np.ascontiguousarray(values)) for values in given.values())
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        stack.enter_context(resized_together(network))
        # What is warned of (a traced branch, a constant) shows in the vectors of other items, which are compared.
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        try:
            torch.onnx.export(
                network, arguments, str(path), input_names=list(given), output_names=["vectors"], dynamic_axes=axes,
                opset_version=OPSET, dynamo=False,
            )  # fmt: skip
        except Exception as error:
            first = str(error).strip().split("\n")[0][:200]
            raise InputError(
                f"the towers of '{encoder}' cannot be written as ONNX ({type(error).__name__}: {first}); export them"
                " --to transformers or safetensors"
            ) from error


def _run(path: Path, given: dict[str, NDArray[Any]]) -> NDArray[np.float32]:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, given)[0])
