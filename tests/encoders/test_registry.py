from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mispair.encoders import registry
from mispair.encoders.own import FunctionEncoder
from mispair.encoders.pipeline import encode_pictures, encode_texts
from mispair.encoders.registry import list_encoders, open_encoder, register_encoder
from mispair.errors import InputError
from tests.encoders.tiny import mean_colours, pictures, text_sizes, tiny


def test_names_that_mean_something(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(registry, "_REGISTERED", {})
    assert open_encoder("basic", device="cpu", cells=2).images["cells"] == (4, 1280)
    register_encoder("mine", lambda device, cells: tiny())
    assert open_encoder("mine").name == "tiny"
    assert "mine" in [about.name for about in list_encoders()]
    given = tiny()
    assert open_encoder(given) is given
    with pytest.raises(InputError, match="choose another name"):
        register_encoder("basic", lambda device, cells: tiny())


def test_pictures_of_one_and_texts_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        registry, "_REGISTERED", {"seer": lambda **o: FunctionEncoder("seer", "1", images=mean_colours)}
    )
    both = open_encoder("seer+basic", device="cpu")
    assert (both.name, both.joint) == ("seer+basic", False)
    assert encode_pictures(both, pictures(2), tmp_path).encoded == 2
    assert encode_texts(both, ["a dog"], tmp_path).tables["vector"].shape == (512,)
    with pytest.raises(InputError, match="'seer' does not encode texts; in A"):
        open_encoder("basic+seer")
    with pytest.raises(InputError, match="no space for both sides"):
        both.in_text_space(np.zeros((1, 3), np.float32))


def test_a_package_offers_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    about = tmp_path / "offered-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: offered\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[mispair.encoders]\nviolet = offered_here:make\nbad = offered_here:broken\n"
    )
    (tmp_path / "offered_here.py").write_text(
        "from tests.encoders.tiny import tiny\ndef make(device, cells):\n    return tiny()\n"
        "def broken(device, cells):\n    raise RuntimeError('no licence file')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert open_encoder("violet").name == "tiny"
    assert "violet" in [found.name for found in list_encoders()]
    with pytest.raises(
        InputError, match=r"'bad' of offered_here:broken cannot be made \(RuntimeError: no licence file\)"
    ):
        open_encoder("bad")


def test_names_that_mean_nothing():
    with pytest.raises(InputError, match="did you mean 'siglip2-base'"):
        open_encoder("siglip2-bas")
    with pytest.raises(InputError, match="the names are basic, clip-b32"):
        open_encoder("zzz")
    with pytest.raises(InputError, match="there is no device 'gpu7'"):
        open_encoder("basic", device="gpu7")


def test_functions_that_do_not_keep_their_word():
    with pytest.raises(InputError, match="has no function"):
        FunctionEncoder("x", "1")
    with pytest.raises(InputError, match="cannot be joint with one side"):
        FunctionEncoder("x", "1", images=mean_colours, joint=True)
    with pytest.raises(InputError, match="says it is joint, but its widths"):
        FunctionEncoder("x", "1", images=mean_colours, texts=lambda texts: np.ones((len(texts), 5)), joint=True)
    with pytest.raises(InputError, match=r"returned \(3,\) for 1 items; expected \(1, width\)"):
        FunctionEncoder("x", "1", images=lambda pixels: np.ones(3))
    assert FunctionEncoder("x", "1", images=mean_colours, texts=text_sizes, joint=True).joint
