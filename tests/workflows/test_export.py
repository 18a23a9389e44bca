"""Exported models: vectors equal to the networks', a card, and one sentence where it cannot be done."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import mispair as mp
from mispair.errors import InputError
from mispair.models import MODELS, InputSizes, build_model
from mispair.workflows.export import export
from mispair.workflows.onnx_graph import OPSET, side_graph
from mispair.workflows.train import train
from tests.data.samples import run as run_cli
from tests.models.batches import TEXT_WIDTH, VOCABULARY, WIDTH
from tests.synthetic import tiny_config

LENGTHS = torch.tensor([5, 1, 3, 5, 2, 4, 1])
MASK = torch.arange(5) < LENGTHS[:, None]
KINDS = [
    ({"name": "dual"}, False),
    ({"name": "dual", "hidden": 0}, False),
    ({"name": "dual", "space": "joint"}, False),
    ({"name": "vse", "words": "bag"}, True),
    ({"name": "vse", "words": "bag"}, False),
    ({"name": "vse", "words": "gru"}, True),
]


def built(values, words, seed=0):
    torch.manual_seed(seed)
    joint = values.get("space") == "joint"
    text = {"vocabulary_size": VOCABULARY} if words else {"text_width": WIDTH if joint else TEXT_WIDTH}
    model = build_model(MODELS.parse({"embed": 12, **values}), InputSizes(image_width=WIDTH, **text)).eval()
    for parameter in model.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    return model


def given(model, side):
    sizes = model.sizes
    if side == "texts" and sizes.vocabulary_size is not None:
        return torch.randint(0, VOCABULARY, (7, 5), generator=torch.Generator().manual_seed(1))
    width = sizes.image_width if side == "images" else sizes.text_width
    values = torch.randn(7, 5, width, generator=torch.Generator().manual_seed(1))
    return values.masked_fill(~MASK[..., None], float("nan"))  # nobody may read what is not real


@pytest.mark.parametrize(("values", "words"), KINDS)
@pytest.mark.parametrize("networks", [1, 2])
def test_a_graph_gives_the_vectors_of_the_networks(values, words, networks):
    onnxruntime = pytest.importorskip("onnxruntime")
    models = [built(values, words, seed) for seed in range(networks)]
    cosines = []
    for side in ("images", "texts"):
        graph = side_graph(models, side)
        assert graph.opset_import[0].version == OPSET
        session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
        values = given(models[0], side)
        found = session.run(None, {"values": values.numpy(), "mask": MASK.numpy()})[0]
        with torch.no_grad():
            encoded = [
                m.encode_images(values, MASK) if side == "images" else m.encode_texts(values, MASK) for m in models
            ]
        expected = torch.cat([e.values[:, 0] for e in encoded], 1) / networks**0.5
        np.testing.assert_allclose(found, expected.numpy(), atol=1e-5, rtol=0)
        cosines.append((found, encoded))
    (images, seen), (texts, read) = cosines
    mean = sum(m.similarity(s, r) for m, s, r in zip(models, seen, read, strict=True)) / networks
    np.testing.assert_allclose(images @ texts.T, mean.detach().numpy(), atol=1e-5, rtol=0)


def test_what_cannot_be_written_is_said():
    pytest.importorskip("onnx")
    with pytest.raises(InputError, match="vse cannot be exported as ONNX: learned pooling"):
        side_graph([built({"name": "vse", "pooling": "gpo"}, True)], "images")
    with pytest.raises(InputError, match="saf cannot be exported as ONNX: its score is no product of vectors"):
        side_graph([built({"name": "saf", "sim": 8}, True)], "images")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    sets = ("data.limit=31", "train.epochs=1", "method.name=ncr", "method.noisy_from=0", "model.words=bag")
    train(tiny_config(*sets), folder)
    return folder


def test_safetensors_build_the_same_networks(finished, tmp_path):
    out = export(finished, tmp_path / "out", "safetensors")
    assert {file.name for file in out.iterdir()} == {"README.md", "config.json", "model.safetensors", "vocabulary.json"}
    facts, weights = json.loads((out / "config.json").read_text()), load_file(out / "model.safetensors")
    assert facts["networks"] == ["a", "b"]
    images = np.random.default_rng(0).normal(size=(3, 1, facts["sizes"]["image_width"])).astype(np.float32)
    run = mp.load(finished)
    for name, own in zip(facts["networks"], run.models, strict=True):
        model = build_model(MODELS.parse(facts["model"]), InputSizes(**facts["sizes"])).eval()
        state = {k.removeprefix(f"{name}."): v for k, v in weights.items() if k.startswith(f"{name}.")}
        model.load_state_dict(state)
        real = torch.ones(3, 1, dtype=torch.bool)
        both = [m.encode_images(torch.from_numpy(images), real).values for m in (model, own)]
        assert torch.equal(*both)
    card = (out / "README.md").read_text()
    for word in ("rSum", "data hash", "features: as they came with the data", "load_file"):
        assert word in card


def test_onnx_ranks_as_the_run_does(finished, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    out = export(finished, tmp_path / "out", "onnx")
    run = mp.load(finished)
    data = run.open_split("dev")
    images, image_mask = data.image_batch(np.arange(len(data.images)))
    texts, text_mask = data.text_batch(np.arange(20))
    vectors = []
    for side, values, mask in (("images", images, image_mask), ("texts", texts, text_mask)):
        session = onnxruntime.InferenceSession(str(out / f"{side}.onnx"), providers=["CPUExecutionProvider"])
        vectors.append(session.run(None, {"values": values.numpy(), "mask": mask.numpy()})[0])
    captions = [data.table.captions[row] for row in range(20)]
    np.testing.assert_allclose(vectors[0] @ vectors[1].T, run.score(images, captions), atol=1e-5)


def test_the_verb_prints_how_to_push_and_sends_nothing(finished, tmp_path, monkeypatch, capsys):
    ran = run_cli(monkeypatch, capsys, "export", finished, "-o", tmp_path / "out", "--push", "someone/model")
    assert ran.code == 0, ran
    assert "Nothing was sent. To upload it: hf upload someone/model" in ran.out
    ran = run_cli(monkeypatch, capsys, "export", finished, "-o", tmp_path / "out")
    assert (ran.code, "exists already" in ran.err) == (2, True)
    ran = run_cli(monkeypatch, capsys, "export", finished, "--to", "gguf", "-o", tmp_path / "x")
    assert "there is no format 'gguf' to export to; the formats are safetensors, onnx" in ran.err
    assert not (tmp_path / "x").exists()


def test_a_run_that_is_not_finished_is_refused(tmp_path):
    train(tiny_config("data.limit=31", "train.epochs=1"), tmp_path / "run", summarize=False)
    with pytest.raises(InputError, match="is not finished"):
        export(tmp_path / "run", tmp_path / "out", "safetensors")


def test_a_run_that_says_nothing_of_its_data_is_refused(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    (tmp_path / "run" / "metrics.json").write_text("{}")
    with pytest.raises(InputError, match=r"metrics.json is damaged: it says nothing of the data; train the run again"):
        export(tmp_path / "run", tmp_path / "out", "safetensors")
    assert not (tmp_path / "out").exists()
