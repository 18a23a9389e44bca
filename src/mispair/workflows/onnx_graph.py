"""The two sides of networks on features as ONNX graphs, node by node: `vse` with mean pooling, and heads of `dual`.

Towers that were trained are written by `mispair.workflows.onnx_towers`.

A graph takes `values` (items, parts, width) float32, or (items, words) int64, and `mask` (items, parts) bool, real
parts first, and gives `vectors` (items, width): the products of both sides' vectors are the cosines, of several
networks their mean cosines. Letters: N items, T parts, F width, D width of a vector.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from mispair.errors import InputError
from mispair.models.dual import Dual
from mispair.models.vse import VSE
from mispair.protocols import RetrievalModel

OPSET = 18
_IR_VERSION = 10  # of the file format: read by every runtime since 2024
Side = Literal["images", "texts"]


def side_graph(models: Sequence[RetrievalModel], side: Side) -> Any:
    """One side of networks whose mean score ranks, as an `onnx.ModelProto`.

    Raises:
        InputError: a network whose score is not a product of two vectors, or that reads texts in a way not written
            here.
    """
    from onnx import TensorProto, checker, helper

    graph = _Graph()
    vectors = [_vectors(graph, model, side, f"network{k}.") for k, model in enumerate(models)]
    joined = vectors[0] if len(vectors) == 1 else graph.add("Concat", vectors, axis=-1)
    if len(vectors) > 1:
        joined = graph.add("Mul", [joined, graph.constant(np.float32(len(vectors) ** -0.5))])
    graph.add("Identity", [joined], output="vectors")
    words = side == "texts" and graph.words
    shape: list[str | int | None] = ["items", "parts"] if words else ["items", "parts", graph.width]
    inputs = [
        helper.make_tensor_value_info("values", TensorProto.INT64 if words else TensorProto.FLOAT, shape),
        helper.make_tensor_value_info("mask", TensorProto.BOOL, ["items", "parts"]),
    ]
    output = helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["items", None])
    body = helper.make_graph(graph.nodes, side, inputs, [output], graph.weights)
    model = helper.make_model(
        body, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=_IR_VERSION, producer_name="mispair"
    )
    checker.check_model(model, full_check=True)
    return model


class _Graph:
    """Nodes and weights as they are written, each value by a name."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.words = False
        self.width = 0

    def add(self, kind: str, inputs: Sequence[str], output: str | None = None, **attributes: Any) -> str:
        from onnx import helper

        name = output or f"value{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, value: Any, name: str | None = None) -> str:
        from onnx import numpy_helper

        name = name or f"constant{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def linear(self, values: str, layer: nn.Linear, name: str) -> str:
        """(N, F) -> (N, D)."""
        weight, bias = (self.constant(_array(t), f"{name}.{part}") for t, part in _parts(layer))
        return self.add("Gemm", [values, weight, bias], transB=1)

    def mean(self, values: str) -> str:
        """The mean of the real parts, whatever stands in the others: (N, T, F) -> (N, F)."""
        real = self.add("Unsqueeze", ["mask", self.constant(np.array([-1]))])
        kept = self.add("Where", [real, values, self.constant(np.float32(0))])
        total = self.add("ReduceSum", [kept, self.constant(np.array([1]))], keepdims=0)
        count = self.add("ReduceSum", [self.add("Cast", ["mask"], to=1), self.constant(np.array([1]))], keepdims=1)
        return self.add("Div", [total, count])

    def unit(self, values: str) -> str:
        """(N, D) -> (N, D), of length 1."""
        length = self.add("ReduceL2", [values, self.constant(np.array([-1]))], keepdims=1)
        return self.add("Div", [values, self.add("Max", [length, self.constant(np.float32(1e-12))])])

    def gelu(self, values: str) -> str:
        erf = self.add("Erf", [self.add("Div", [values, self.constant(np.float32(math.sqrt(2)))])])
        half = self.add("Mul", [values, self.constant(np.float32(0.5))])
        return self.add("Mul", [half, self.add("Add", [erf, self.constant(np.float32(1))])])

    def last_state(self, values: str, gru: nn.GRU, name: str) -> str:
        """The state of a GRU after the last real part, (N, T, F) -> (N, D)."""
        layer = dict(gru.named_parameters())
        recur = _gates(layer["weight_hh_l0"])[None]
        taken = self.constant(_gates(layer["weight_ih_l0"])[None], f"{name}.W")
        biases = np.concatenate([_gates(layer["bias_ih_l0"]), _gates(layer["bias_hh_l0"])])[None]
        count = self.add("ReduceSum", [self.add("Cast", ["mask"], to=6), self.constant(np.array([1]))], keepdims=0)
        real = self.add("Unsqueeze", ["mask", self.constant(np.array([-1]))])
        kept = self.add("Where", [real, values, self.constant(np.float32(0))])
        ordered = self.add("Transpose", [kept], perm=[1, 0, 2])
        inputs = [ordered, taken, self.constant(recur, f"{name}.R"), self.constant(biases, f"{name}.B"), count]
        from onnx import helper

        state = f"{name}.state"
        size = gru.hidden_size
        self.nodes.append(helper.make_node("GRU", inputs, ["", state], hidden_size=size, linear_before_reset=1))
        return self.add("Squeeze", [state, self.constant(np.array([0]))])


def _vectors(graph: _Graph, model: RetrievalModel, side: Side, name: str) -> str:
    if isinstance(model, Dual):
        return _dual(graph, model, side, name)
    if isinstance(model, VSE) and model.config.pooling == "mean":
        return _vse(graph, model, side, name)
    kind = getattr(getattr(model, "config", None), "name", type(model).__name__)
    why = "learned pooling is not written as ONNX" if isinstance(model, VSE) else "its score is no product of vectors"
    raise InputError(f"{kind} cannot be exported as ONNX: {why}; export it --to safetensors, or train vse or dual")


def _dual(graph: _Graph, model: Dual, side: Side, name: str) -> str:
    head = model.images if side == "images" else model.texts
    graph.width = model.sizes.image_width if side == "images" else model.sizes.text_width or 0
    given = graph.mean("values")
    if head.basis is not None:
        centred = graph.add("Sub", [given, graph.constant(_array(head.mean), f"{name}mean")])
        given = graph.add("MatMul", [centred, graph.constant(_array(head.basis), f"{name}basis")])
    moved = given if head.project is None else graph.linear(given, head.project, f"{name}project")
    if head.inner is not None and head.outer is not None:
        inner = graph.gelu(graph.linear(given, head.inner, f"{name}inner"))
        moved = graph.add("Add", [moved, graph.linear(inner, head.outer, f"{name}outer")])
    return graph.unit(moved)


def _vse(graph: _Graph, model: VSE, side: Side, name: str) -> str:
    if side == "images":
        graph.width = model.sizes.image_width
        return graph.unit(graph.linear(graph.mean("values"), model.images.project, f"{name}project"))
    texts, values = model.texts, "values"
    graph.width = model.sizes.text_width or 0
    if texts.table is not None:
        graph.words = True
        table = graph.constant(_array(texts.table.table.weight), f"{name}words")
        values = graph.add("Gather", [table, "values"])
    if texts.project is not None:
        return graph.unit(graph.linear(graph.mean(values), texts.project, f"{name}text_project"))
    assert isinstance(texts.gru, nn.GRU)
    return graph.unit(graph.last_state(values, texts.gru, f"{name}gru"))


def _parts(layer: nn.Linear) -> tuple[tuple[Tensor, str], tuple[Tensor, str]]:
    return (layer.weight, "weight"), (layer.bias, "bias")


def _gates(weight: Tensor) -> NDArray[np.float32]:
    """torch keeps the gates of a GRU as reset, update, new; ONNX as update, reset, new."""
    reset, update, new = np.split(_array(weight), 3)
    return np.concatenate([update, reset, new])


def _array(tensor: Tensor) -> NDArray[np.float32]:
    return np.ascontiguousarray(tensor.detach().float().cpu().numpy())
