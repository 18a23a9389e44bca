"""What lies in the hub's cache: used, fingerprinted, missing, or refused with the reason."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from mispair.encoders.cache import open_table
from mispair.encoders.registry import open_encoder
from mispair.errors import InputError
from tests.encoders.tiny import PICTURES, images

hubs = pytest.importorskip("tests.encoders.hubs")


def test_the_fingerprint_is_of_the_content(folder, tmp_path: Path):
    copy = tmp_path / "copy"
    hubs.clip(copy)
    here, there = (open_encoder(str(path)).fingerprint for path in (folder("clip"), copy))
    assert here == there
    path = copy / "preprocessor_config.json"
    path.write_text(path.read_text().replace("0.48145466", "0.5"))
    assert open_encoder(str(copy)).fingerprint != here


def test_what_is_refused_and_why(tmp_path: Path):
    hubs.clip(tmp_path / "clip")
    folder = tmp_path / "clip"

    def refused(match: str) -> None:
        with pytest.raises(InputError, match=match):
            open_encoder(str(folder))

    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "auto_map": {"AutoModel": "evil.Model"}}))
    (folder / "evil.py").write_text("raise SystemError('this code must not run')")
    refused(r"wants to run its own code \(auto_map in config.json\)")
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "gpt2"}))
    refused("of type 'gpt2'; the types mispair can use are clip")
    (folder / "config.json").write_text("{")
    refused("config.json is not JSON")
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    refused("has no model.safetensors in .*pickled weights are not read")
    (folder / "pytorch_model.bin").rename(folder / "model.safetensors")
    (folder / "preprocessor_config.json").rename(folder / "x")
    refused("is incomplete: put preprocessor_config.json into")
    (folder / "x").rename(folder / "preprocessor_config.json")
    (folder / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(InputError, match="cannot be loaded"):
        images(open_encoder(str(folder)), "vector")


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("tokenizer.json", b"[" * 100_000, r"is damaged: .*tokenizer.json is not JSON; download it again"),
        ("tokenizer.json", b"\xff", r"is damaged: .*tokenizer.json is not JSON"),
        (
            "model.safetensors",
            b"x" * 50,
            r"cannot be loaded \(.*\); if its files are damaged, download or save it again",
        ),
        ("preprocessor_config.json", b"{}", r"cannot encode pictures \(.*224.*\); if its files are damaged"),
    ],
)
def test_a_damaged_file_is_said_without_names_of_exceptions(
    folder, tmp_path: Path, file: str, content: bytes, said: str
):
    shutil.copytree(folder("clip"), tmp_path / "clip")
    (tmp_path / "clip" / file).write_bytes(content)
    with pytest.raises(InputError, match=said) as error:
        images(open_encoder(str(tmp_path / "clip")), "vector")
    assert not re.search("[a-z]Error", str(error.value))


def test_a_configuration_that_does_not_fit_is_said(folder, tmp_path: Path):
    shutil.copytree(folder("clip"), tmp_path / "clip")
    config = json.loads((tmp_path / "clip/config.json").read_text())
    config["vision_config"]["patch_size"] = 0
    (tmp_path / "clip/config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"cannot be loaded \(.*zero.*\); if its files are damaged"):
        open_encoder(str(tmp_path / "clip"))


def test_offline_names_what_is_missing_and_where_to_put_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import huggingface_hub

    real = huggingface_hub.snapshot_download

    def unplugged(*arguments, local_files_only=False, **options):
        if not local_files_only:
            raise ConnectionError("no route to host")
        return real(*arguments, local_files_only=True, cache_dir=tmp_path, **options)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unplugged)
    with pytest.raises(InputError) as refused:
        open_encoder("siglip2-base@abc123")
    sentence = str(refused.value)
    assert "missing: config.json, model.safetensors" in sentence
    assert "hf download google/siglip2-base-patch16-224 --revision abc123 --local-dir FOLDER" in sentence


def test_a_snapshot_in_the_cache_is_used_and_its_commit_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import huggingface_hub

    commit = "0123456789abcdef0123456789abcdef01234567"
    home = tmp_path / "models--somebody--clip"
    hubs.clip(home / "snapshots" / commit)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(commit)
    real = huggingface_hub.snapshot_download

    def cached(*arguments, local_files_only=False, **options):
        assert local_files_only, "the hub must not be asked for what is here"
        return real(*arguments, local_files_only=True, cache_dir=tmp_path, **options)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", cached)
    encoder = open_encoder("somebody/clip", device="cpu")
    assert encoder.revision == commit
    assert encoder.name == f"somebody/clip@{commit}", "what a run or a folder of features keeps"
    again = open_encoder(encoder.name, device="cpu")
    assert (again.name, again.fingerprint) == (encoder.name, encoder.fingerprint)
    by_branch = open_encoder("somebody/clip@main", device="cpu")
    folders = {open_table(tmp_path, one, "images", "vector").folder for one in (encoder, again, by_branch)}
    assert (by_branch.name, len(folders)) == (encoder.name, 1)
    assert images(encoder, "vector")["vector"].values.shape == (3, 8)


def test_a_broken_torchvision_is_recognised(folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "torchvision").mkdir()
    (tmp_path / "torchvision" / "__init__.py").write_text(
        "raise RuntimeError('operator torchvision::nms does not exist')"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "torchvision", raising=False)
    encoder = open_encoder(str(folder("clip")))
    monkeypatch.setattr(encoder, "_load", lambda *a, **k: __import__("torchvision"))
    del encoder.__dict__["processor"]
    with pytest.raises(InputError, match=r"nms does not exist.*pip uninstall torchvision"):
        encoder.prepare(PICTURES[0])
