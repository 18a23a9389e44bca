"""The card of an export: recalls, the rate as far as it is known, hashes of the data, licences of what it builds on."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import torch
from PIL import Image

from mispair.auditing.rate_words import rate_words
from mispair.workflows.export import export
from mispair.workflows.export_card import licence_of
from mispair.workflows.train import train
from mispair.workflows.trained_run import load_run
from tests.synthetic import tiny_config
from tests.workflows.tower_runs import configured, keep_the_last


def exported(config, folder, to="safetensors"):
    """The card, what the run itself found, and the facts beside the card."""
    train(config, folder / "run")
    out = export(folder / "run", folder / "out", to)
    facts = json.loads((out / ("mispair.json" if to == "onnx" else "config.json")).read_text())
    return (out / "README.md").read_text(), json.loads((folder / "run" / "metrics.json").read_text()), facts


def test_recalls_and_hashes_are_those_of_the_run(tmp_path):
    card, found, facts = exported(tiny_config("data.limit=31", "train.epochs=1"), tmp_path)
    for split in ("dev", "test"):
        assert f"| {split} | {found[split]['i2t_r1']:.1f} |" in card
        assert f"{found[split]['rsum']:.1f} |" in card
        assert f"{split} `{found['data'][f'{split}_hash'][:16]}`" in card
        assert facts[f"data_{split}_hash"] == found["data"][f"{split}_hash"]
    assert f"- data hash: `{found['data']['hash'][:16]}`" in card
    assert facts["data_hash"] == found["data"]["hash"]
    assert len({found["data"][key] for key in ("hash", "dev_hash", "test_hash")}) == 3


@pytest.mark.parametrize("method", ["l2rm", "ncr"])
def test_the_rate_is_said_once_and_as_far_as_it_is_known(tmp_path, method):
    other = "plain" if method == "l2rm" else "l2rm"
    sets = ("data.limit=31", "train.epochs=2", f"method.name={other}", f"method.name={method}")
    card, found, _ = exported(tiny_config(*sets, "method.warmup_epochs=1"), tmp_path)
    assert card.count("Training treated") == 1
    assert f"{found['called_mismatched']:.1%}" in card
    assert "as the method itself estimates" not in card, "a split by losses is no estimate"
    low, high = found["mismatch_rate_ci"]
    assert card.count(rate_words(found["mismatch_rate"], low, high, found["conclusive"])) == 1
    assert "`mispair audit .`" not in card, "the folder of an export is no run"


def test_where_no_rate_was_estimated_the_card_says_so(tmp_path):
    train(tiny_config("data.limit=31", "train.epochs=1"), tmp_path / "run")
    metrics = tmp_path / "run" / "metrics.json"
    found = json.loads(metrics.read_text())
    known = {key: found.pop(key) for key in ("mismatch_rate", "mismatch_rate_ci", "conclusive")}
    metrics.write_text(json.dumps(found))  # as of a network of one's own that reads pictures
    card = (export(tmp_path / "run", tmp_path / "out", "safetensors") / "README.md").read_text()
    assert "mismatched training pairs: not estimated" in card
    metrics.write_text(json.dumps(found | known))
    assert (
        "not estimated" not in (export(tmp_path / "run", tmp_path / "again", "safetensors") / "README.md").read_text()
    )


def test_towers_that_learned_have_a_rate_by_what_they_were(hub, tmp_path):
    card, found, _ = exported(configured(hub, f"dinov2+{hub / 'bert'}"), tmp_path, "onnx")
    low, high = found["mismatch_rate_ci"]
    assert rate_words(found["mismatch_rate"], low, high, found["conclusive"]) in card


def test_licences_of_both_towers(hub, tmp_path):
    (hub / "bert" / "README.md").write_text("---\nlanguage: en\nlicense: apache-2.0\n---\n# A model\nlicense: none\n")
    card, _, _ = exported(configured(hub, f"dinov2+{hub / 'bert'}"), tmp_path, "onnx")
    assert "- base model `bert` (licence: apache-2.0)" in card, "no path of this machine: the card is for others"
    assert "- base model `dinov2` (licence not known here: look it up before you share this model)" in card


@pytest.mark.parametrize("encoder", ["clip", "siglip", "siglip2"])
def test_the_lines_of_the_card_give_the_vectors_of_the_run(hub, tmp_path, monkeypatch, encoder):
    keep_the_last(monkeypatch)
    train(configured(hub, encoder, "model.tune=lora"), tmp_path / "run")
    out = export(tmp_path / "run", tmp_path / "out", "transformers")
    (code,) = re.findall(r"```python\n(.*?)```", (out / "README.md").read_text(), re.S)
    shapes = ((40, 60, 3), (33, 32, 3), (90, 30, 3))
    pixels = [np.random.default_rng(k).integers(0, 255, shape, np.uint8) for k, shape in enumerate(shapes)]
    named = {"pictures": [Image.fromarray(one) for one in pixels], "captions": ["a dog runs", "the", "two cats " * 20]}
    monkeypatch.chdir(out)
    with torch.no_grad():
        exec(code, named)
    run = load_run(tmp_path / "run")
    seen, read = (torch.nn.functional.normalize(named[side], dim=1).numpy() for side in ("images", "texts"))
    np.testing.assert_allclose(seen, run.encode_images(named["pictures"]).vectors, atol=1e-5)
    np.testing.assert_allclose(read, run.encode_texts(named["captions"]).vectors, atol=1e-5)


def test_licences_by_name(tmp_path):
    assert licence_of("basic") == "Apache-2.0"
    assert licence_of("clip-b32") == licence_of("clip-b32@main") == "MIT"
    assert licence_of("laion/CLIP-ViT-B-32-laion2B-s34B-b79K") == "MIT"
    assert licence_of("someone/model") is None
    assert licence_of(str(tmp_path)) is None
    (tmp_path / "README.md").write_text("# no front matter\nlicense: mit\n")
    assert licence_of(str(tmp_path)) is None
    (tmp_path / "README.md").write_text("---\nlicense: `rm` <b>[x](y)\n---\n")
    assert licence_of(str(tmp_path)) == "rm bxy", "no markup from strangers"
