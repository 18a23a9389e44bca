"""Trained towers as ONNX: run by onnxruntime on what the library prepares, they give the vectors of the run."""

from __future__ import annotations

import json
from contextlib import nullcontext

import numpy as np
import onnx
import pytest
from PIL import Image

from mispair.errors import InputError
from mispair.workflows import onnx_towers
from mispair.workflows.export import export
from mispair.workflows.train import train
from mispair.workflows.trained_run import load_run
from tests.workflows.tower_runs import configured, keep_the_last

CAPTIONS = ["a dog runs", "two cats with a red ball on the sofa", "the", "a blue dog and a cat", "beach"]
KINDS = {
    "clip, adapters": ("clip", ("model.tune=lora",)),
    "clip, whole, with a head": ("clip", ("model.tune=full", "model.hidden=5")),
    "siglip, whole": ("siglip", ("model.tune=full",)),
    "siglip2, adapters": ("siglip2", ("model.tune=lora",)),
    "separate towers": ("dinov2+{hub}/bert", ("model.tune=lora", "model.embed=7")),
}


@pytest.fixture(autouse=True)
def _learned(monkeypatch):
    keep_the_last(monkeypatch)


def by_onnxruntime(folder, side, count):
    """The vectors of the first items, prepared by the files in the folder as its README says."""
    import onnxruntime
    import transformers

    if side == "images":
        processor = transformers.AutoImageProcessor.from_pretrained(folder / "images", backend="pil")
        made = processor(images=pictures()[:count], return_tensors="np")
    else:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "texts")
        said = (folder / "README.md").read_text()
        padding = "max_length" if "padding='max_length'" in said else True
        made = tokenizer(CAPTIONS[:count], padding=padding, truncation=True, max_length=16, return_tensors="np")
    session = onnxruntime.InferenceSession(str(folder / f"{side}.onnx"), providers=["CPUExecutionProvider"])
    return session.run(None, {one.name: made[one.name] for one in session.get_inputs()})[0]


def pictures():
    rng = np.random.default_rng(7)
    return [Image.fromarray(rng.integers(0, 255, (20 + 9 * k, 64 - 8 * k, 3), dtype=np.uint8)) for k in range(5)]


def as_files(folder):
    folder.mkdir()
    for k, one in enumerate(pictures()):
        one.save(folder / f"{k}.png")
    return [folder / f"{k}.png" for k in range(5)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_graphs_give_the_vectors_of_the_run(hub, tmp_path, kind):
    encoder, sets = KINDS[kind]
    train(configured(hub, encoder.format(hub=hub), *sets), tmp_path / "run")
    folder = export(tmp_path / "run", tmp_path / "out", "onnx")
    run = load_run(tmp_path / "run")
    seen, read = run.encode_images(as_files(tmp_path / "files")).vectors, run.encode_texts(CAPTIONS).vectors
    for count in (1, 3, 5):
        np.testing.assert_allclose(by_onnxruntime(folder, "images", count), seen[:count], atol=1e-5, rtol=0)
        np.testing.assert_allclose(by_onnxruntime(folder, "texts", count), read[:count], atol=1e-5, rtol=0)
    weights = {one.name for one in onnx.load(str(folder / "images.onnx")).graph.initializer}
    assert not [name for name in weights if "text_model" in name], "the other side's weights are not carried along"
    assert json.loads((folder / "mispair.json").read_text())["model"]["tune"] in ("lora", "full")


def test_two_networks_are_one_graph_of_their_mean_cosine(hub, tmp_path):
    train(configured(hub, "clip", "method.noisy_from=0", method="ncr"), tmp_path / "run")
    folder = export(tmp_path / "run", tmp_path / "out", "onnx")
    run = load_run(tmp_path / "run")
    assert len(run.models) == 2
    found = by_onnxruntime(folder, "images", 5) @ by_onnxruntime(folder, "texts", 5).T
    np.testing.assert_allclose(found, run.score(as_files(tmp_path / "files"), CAPTIONS), atol=1e-5, rtol=0)


def test_a_graph_that_is_not_the_network_is_not_kept(hub, tmp_path, monkeypatch):
    train(configured(hub, "clip"), tmp_path / "run")
    monkeypatch.setattr(onnx_towers, "own_vectors", lambda models, inputs: [np.ones((4, 8)), np.ones((4, 8))])
    with pytest.raises(InputError, match=r"images\.onnx by onnxruntime gives images vectors that are .* off"):
        export(tmp_path / "run", tmp_path / "out", "onnx")
    assert not (tmp_path / "out").exists()


def test_towers_the_exporter_cannot_write_are_refused_in_one_sentence(hub, tmp_path, monkeypatch):
    train(configured(hub, "siglip2"), tmp_path / "run")
    monkeypatch.setattr(onnx_towers, "resized_together", lambda network: nullcontext())
    with pytest.raises(InputError, match="cannot be written as ONNX") as refused:
        export(tmp_path / "run", tmp_path / "out", "onnx")
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "out").exists()
