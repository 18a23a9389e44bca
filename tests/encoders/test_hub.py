from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from mispair.encoders.hub import HubEncoder
from mispair.encoders.pipeline import PictureItem, encode_pictures, encode_texts
from mispair.encoders.registry import open_encoder
from mispair.encoders.weights import find_weights
from mispair.errors import InputError
from tests.colours import write_colours
from tests.data.samples import run
from tests.encoders.tiny import PICTURES, images
from tests.pictures.samples import saved

transformers = pytest.importorskip("transformers")
hubs = pytest.importorskip("tests.encoders.hubs")
TEXTS = ["A dog runs on the beach", "two cats, a red sofa and a ball", "", "the " * 40]


def reference(folder: Path, kind: str):
    """The library's own way in."""
    model = getattr(transformers, kind).from_pretrained(folder).eval()
    pictures = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")(PICTURES, return_tensors="pt")
    return model, pictures


def slow_mean(patches: torch.Tensor, high: int, wide: int, cells: int) -> np.ndarray:
    """The mean of the patches under each cell, cell by cell. (P, H) -> (cells * cells, H)."""
    grid = patches[: high * wide].reshape(high, wide, -1).numpy()
    rows = []
    for r in range(cells):
        for c in range(cells):
            top, bottom = r * high // cells, -(-(r + 1) * high // cells)
            left, right = c * wide // cells, -(-(c + 1) * wide // cells)
            rows.append(grid[top:bottom, left:right].mean((0, 1)))
    return np.stack(rows)


@pytest.mark.parametrize(("family", "kind"), [("clip", "CLIPModel"), ("siglip", "SiglipModel")])
def test_dual_encoders_equal_the_library(folder, family: str, kind: str):
    encoder = open_encoder(str(folder(family)), device="cpu", cells=3)
    model, pictures = reference(folder(family), kind)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder(family))
    how = {"padding": "max_length"} if family == "siglip" else {"padding": True}
    lowered = [text.lower() for text in TEXTS]
    words = tokenizer(lowered, truncation=True, max_length=16, return_tensors="pt", **how)
    with torch.no_grad():
        whole = model(input_ids=words["input_ids"], attention_mask=words.get("attention_mask"), **pictures)
        patches = model.vision_model(**pictures).last_hidden_state
    made = images(encoder, "vector", "cells")
    vectors = made["vector"].values
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert np.allclose(unit, whole.image_embeds.numpy(), atol=1e-5)
    said = encoder.encode_texts(TEXTS, ("vector",))["vector"].values
    if family == "clip":  # its attention mask changes nothing before the end of a text, and the end is what counts
        assert np.allclose(said / np.linalg.norm(said, axis=1, keepdims=True), whole.text_embeds.numpy(), atol=1e-5)
    else:
        with torch.no_grad():
            expected = model.get_text_features(input_ids=words["input_ids"]).pooler_output
        assert np.allclose(said, expected.numpy(), atol=1e-5)
    skipped = 1 if family == "clip" else 0
    for row in range(len(PICTURES)):
        assert np.allclose(made["cells"].values[row], slow_mean(patches[row, skipped:], 8, 8, 3), atol=1e-5)
    assert encoder.joint
    assert encoder.in_text_space(vectors).shape[1:] == encoder.texts["vector"]


@pytest.mark.parametrize(("family", "kind"), [("siglip", "SiglipModel"), ("siglip2", "Siglip2Model")])
def test_siglip_reads_short_texts_padded_as_in_training(folder, family: str, kind: str):
    encoder = open_encoder(str(folder(family)), device="cpu")
    model = getattr(transformers, kind).from_pretrained(folder(family)).eval()
    ids = transformers.AutoTokenizer.from_pretrained(folder(family))(
        ["a dog"], padding="max_length", max_length=16, return_tensors="pt"
    )["input_ids"]
    with torch.no_grad():
        expected = model.get_text_features(input_ids=ids).pooler_output
    assert np.allclose(encoder.encode_texts(["A Dog"], ("vector",))["vector"].values, expected.numpy(), atol=1e-5)


def test_siglip2_keeps_the_shape_of_pictures(folder):
    encoder = open_encoder(str(folder("siglip2")), device="cpu", cells=2)
    model, pictures = reference(folder("siglip2"), "Siglip2Model")
    with torch.no_grad():
        seen = model.get_image_features(**pictures)
    made = images(encoder, "vector", "cells")
    assert np.allclose(made["vector"].values, seen.pooler_output.numpy(), atol=1e-5)
    grids = pictures["spatial_shapes"].tolist()
    assert len({tuple(grid) for grid in grids}) == 3
    for row, (high, wide) in enumerate(grids):
        assert np.allclose(made["cells"].values[row], slow_mean(seen.last_hidden_state[row], high, wide, 2), atol=1e-5)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder("siglip2"))
    words = tokenizer(
        [t.lower() for t in TEXTS], padding="max_length", truncation=True, max_length=16, return_tensors="pt"
    )
    with torch.no_grad():
        expected = model.get_text_features(input_ids=words["input_ids"]).pooler_output
    assert np.allclose(encoder.encode_texts(TEXTS, ("vector",))["vector"].values, expected.numpy(), atol=1e-5)


@pytest.mark.parametrize(
    ("family", "kind"), [("dinov2", "Dinov2Model"), ("dinov2_with_registers", "Dinov2WithRegistersModel")]
)
def test_dinov2_equals_the_library(folder, family: str, kind: str):
    encoder = open_encoder(str(folder(family)), device="cpu", cells=8)
    model, pictures = reference(folder(family), kind)
    with torch.no_grad():
        seen = model(**pictures)
    made = images(encoder, "vector", "cells")
    assert np.allclose(made["vector"].values, seen.pooler_output.numpy(), atol=1e-5)
    assert np.allclose(made["cells"].values, seen.last_hidden_state[:, -64:].numpy(), atol=1e-5)
    assert not encoder.joint
    assert encoder.texts == {}
    with pytest.raises(InputError, match="no space for both sides"):
        encoder.in_text_space(made["vector"].values)
    with pytest.raises(InputError, match="1 to 8 cells"):
        open_encoder(str(folder(family)), cells=9)


@pytest.mark.parametrize("family", ["clip", "siglip", "siglip2", "dinov2"])
@pytest.mark.parametrize("size", [(401, 2), (2, 400)])
def test_of_a_strip_no_more_is_enlarged_than_what_is_looked_at(
    folder, family: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
):
    """30,000 pixels beside one another, a file of 100 bytes, would be 14 GB at 224 pixels a side."""
    encoder = open_encoder(str(folder(family)), device="cpu", cells=2)
    strip = Image.fromarray(np.random.default_rng(0).integers(0, 256, (*size[::-1], 3), np.uint8))
    processor, asked = encoder.processor, []

    def spied(images: Image.Image, **options: str):
        asked.append(images.size)
        return processor(images=images, **options)

    spied.do_center_crop = getattr(processor, "do_center_crop", False)
    monkeypatch.setattr(encoder, "processor", spied)
    made = encoder.prepare(strip)
    assert max(asked[0]) <= 64 * min(size) + 1 or (asked == [size] and family.startswith("siglip"))
    monkeypatch.setattr("mispair.encoders.hub._LONGEST", 1000)
    assert abs(encoder.prepare(strip) - made).max() < 0.2


@pytest.mark.parametrize("mode", ["mean_tokens", "cls_token"])
@pytest.mark.parametrize("normalise", [True, False])
def test_sentence_encoders_pool_as_their_files_say(tmp_path: Path, mode: str, normalise: bool):
    hubs.bert(tmp_path / "bert")
    hubs.as_sentence_encoder(tmp_path / "bert", mode=mode, normalise=normalise)
    encoder = open_encoder(str(tmp_path / "bert"), device="cpu")
    made = encoder.encode_texts(TEXTS, ("vector", "tokens"))
    model = transformers.BertModel.from_pretrained(tmp_path / "bert").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "bert")
    for row, text in enumerate(TEXTS):
        ids = tokenizer(text or "", truncation=True, max_length=7, return_tensors="pt")["input_ids"].long()
        if not ids.shape[1]:
            assert np.isfinite(made["vector"].values[row]).all()
            continue
        with torch.no_grad():
            tokens = model(input_ids=ids).last_hidden_state[0]  # alone, so nothing is padded
        expected = tokens.mean(0) if mode == "mean_tokens" else tokens[0]
        expected = expected / expected.norm() if normalise else expected
        assert np.allclose(made["vector"].values[row], expected.numpy(), atol=1e-5)
        length = made["tokens"].lengths[row]
        assert length == len(tokens)
        assert np.allclose(made["tokens"].values[row, :length], tokens.numpy(), atol=1e-5)
        assert not made["tokens"].values[row, length:].any()


def test_unknown_pooling_is_refused(tmp_path: Path):
    hubs.bert(tmp_path / "bert")
    hubs.as_sentence_encoder(tmp_path / "bert", mode="max_tokens")
    with pytest.raises(InputError, match=r"does not know \(max_tokens\)"):
        open_encoder(str(tmp_path / "bert"))


def test_through_the_pipeline_and_back(folder, tmp_path: Path):
    encoder = open_encoder(f"{folder('dinov2')}", device="cpu", cells=4)
    odd = [Image.new("L", (1, 1), 9), Image.new("RGB", (1, 700)), Image.new("RGBA", (3, 2))]
    items = [PictureItem(str(k), lambda p=p: saved(p, "PNG")) for k, p in enumerate([*PICTURES, *odd])]
    made = encode_pictures(encoder, items, tmp_path, ("vector", "cells"), batch=2)
    assert made.failed == []
    assert np.isfinite(made.tables["cells"].array()).all()
    alone = encoder.encode_images(encoder.prepare(PICTURES[1])[None], ("vector",))["vector"].values[0]
    assert np.allclose(made.tables["vector"].array()[made.rows("vector")[1]], alone, atol=1e-5)
    said = encode_texts(open_encoder(str(folder("clip")), device="cpu"), TEXTS, tmp_path, "tokens")
    assert said.tables["tokens"].lengths().max() == 16


def test_bfloat16_is_near_and_has_a_cache_of_its_own(folder):
    exact = open_encoder(str(folder("clip")), device="cpu")
    half = open_encoder(str(folder("clip")), device="cpu", precision="bfloat16")
    assert exact.fingerprint != half.fingerprint
    a, b = (images(encoder, "vector")["vector"].values for encoder in (exact, half))
    cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    assert not np.array_equal(a, b)
    assert (cosine > 0.95).all()


def test_bfloat16_where_it_pays_is_an_accelerator_that_has_it(folder, monkeypatch: pytest.MonkeyPatch):
    weights = find_weights(str(folder("clip")))
    made = {}
    for has_it in (True, False):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda has_it=has_it: has_it)
        for device in ("cuda:1", "cpu", "mps"):
            made[has_it, device] = HubEncoder("clip", weights, device=device).fingerprint
    whole, half = (HubEncoder("clip", weights, precision=p).fingerprint for p in ("float32", "bfloat16"))
    assert {key for key, fingerprint in made.items() if fingerprint == half} == {(True, "cuda:1")}
    assert set(made.values()) == {whole, half}


@pytest.mark.parametrize("family", ["clip", "siglip", "siglip2"])
def test_pairs_are_judged_without_training_and_it_is_said(
    folder, family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("MISPAIR_CACHE", str(tmp_path / "cache"))
    table = write_colours(tmp_path, 40)
    place = ("--images", tmp_path / "photos", "--encoder", folder(family), "-o", tmp_path / "audit")
    ran = run(monkeypatch, capsys, "audit", table, *place)
    assert ran.code == 0, ran.err
    assert f"judged by the encoder '{folder(family)}' alone: nothing is trained on this data" in ran.err
    assert "of 40 pairs" in ran.out
