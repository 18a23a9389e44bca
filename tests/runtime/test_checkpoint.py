"""The files of a run that hold tensors: reproducible, and refused in one sentence where they are damaged."""

import json
import os

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from mispair.errors import InputError
from mispair.runtime.checkpoint import load_model, load_state, save_model, save_state

ABOUT = {"sizes": "{}", "data": "abc", "noise": "none", "configuration": "c0ffee", "vocabulary": "w"}


def test_the_same_model_is_the_same_file(tmp_path):
    network = nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2))
    contents = set()
    for number in range(8):  # the library orders metadata anew in every call
        save_model(tmp_path / f"{number}.safetensors", {"a": network, "b": network}, ABOUT)
        contents.add((tmp_path / f"{number}.safetensors").read_bytes())
    assert len(contents) == 1


def test_the_ordered_file_holds_what_was_saved(tmp_path):
    network = nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2))
    save_model(tmp_path / "m.safetensors", {"net": network}, ABOUT)
    states, about = load_model(tmp_path / "m.safetensors")
    assert all(torch.equal(states["net"][key], value) for key, value in network.state_dict().items())
    assert {key: about[key] for key in ABOUT} == ABOUT
    whole = load_file(tmp_path / "m.safetensors")
    assert set(whole) == {f"net.{key}" for key in network.state_dict()}


@pytest.mark.parametrize(
    ("metadata", "sentence"),
    [
        (None, "not a model of this version"),
        ({"format": "1"}, "does not say which networks"),
        ({"format": "1", "scorers": "nonsense"}, "does not say which networks"),
        ({"format": "1", "scorers": '{"net": 1}'}, "does not say which networks"),
        ({"format": "1", "scorers": "[" * 100_000}, "does not say which networks"),
        ({"format": "1", "scorers": '["other"]'}, "which is of none of its networks"),
    ],
)
def test_a_model_without_our_keys_gets_one_sentence(tmp_path, metadata, sentence):
    save_file({"net.weight": torch.ones(2)}, tmp_path / "m.safetensors", metadata)
    with pytest.raises(InputError, match=sentence):
        load_model(tmp_path / "m.safetensors")


def test_a_pipe_is_no_model_and_no_state(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="has no model"):
        load_model(tmp_path / "pipe")
    with pytest.raises(InputError, match="damaged"):
        load_state(tmp_path / "pipe")


def test_a_state_of_another_version(tmp_path):
    save_state(tmp_path / "state.pt", {"a": 1})
    assert load_state(tmp_path / "state.pt")["a"] == 1
    torch.save({"format": 99}, tmp_path / "state.pt")
    with pytest.raises(InputError, match="another version"):
        load_state(tmp_path / "state.pt")
    torch.save(json.dumps({}), tmp_path / "state.pt")
    with pytest.raises(InputError, match="another version"):
        load_state(tmp_path / "state.pt")
