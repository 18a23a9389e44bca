"""What is saved and how: the only place that writes or reads a run's state.

The state holds everything to go on from (tensors, numbers and strings only: it is read with `weights_only`, so it
cannot execute code). The model file holds the weights that score, nothing else. Both are written atomically, so a kill
or a full disk leaves the previous one intact.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor, nn

from mispair.atomic import write_atomically
from mispair.errors import InputError

FORMAT = 1


def save_state(path: Path, state: dict[str, Any]) -> None:
    """Write everything needed to go on from. Raises InputError where the disk is full."""
    write_atomically(path, lambda file: torch.save({"format": FORMAT, **state}, file), "go on with --resume")


def load_state(path: Path) -> dict[str, Any]:
    """What `save_state` wrote. Raises InputError where it is damaged; what it holds is checked by who takes it up."""
    try:
        if not os.path.isfile(path):
            raise OSError("not a regular file")
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise InputError(damaged(path)) from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise InputError(f"{path} was written by another version of mispair; start the run again")
    return state


def damaged(path: Path) -> str:
    """The sentence about a state that cannot be taken up."""
    return f"{path} is damaged or not a checkpoint of mispair; start the run again in another folder"


def save_model(path: Path, networks: Mapping[str, nn.Module], about: dict[str, str]) -> None:
    """Weights of the networks that score, with what is needed to build them."""
    tensors = {
        f"{name}.{key}": value.detach().cpu().contiguous().clone()  # the library refuses weights that are shared
        for name, network in networks.items()
        for key, value in network.state_dict().items()
    }
    metadata = {"format": str(FORMAT), "scorers": json.dumps(list(networks)), **about}
    content = _in_order(save(tensors, metadata))
    write_atomically(path, lambda temporary: temporary.write_bytes(content), "go on with --resume")


def load_model(path: Path) -> tuple[dict[str, dict[str, Tensor]], dict[str, str]]:
    """Weights by the name of the network that scores, and the metadata. Raises InputError where the file is damaged."""
    if not os.path.isfile(path):
        raise InputError(f"{path.parent} has no model yet: there is no {path.name}")
    try:
        with safe_open(path, "pt") as file:
            metadata: dict[str, str] = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except Exception as error:
        raise InputError(f"{path} is damaged ({error!s:.80}); train again or copy it anew") from error
    if metadata.get("format") != str(FORMAT):
        raise InputError(f"{path} is not a model of this version of mispair")
    states: dict[str, dict[str, Tensor]] = {name: {} for name in _scorers(path, metadata)}
    for key, value in tensors.items():
        name, _, inner = key.partition(".")
        if name not in states:
            raise InputError(f"{path} is damaged: it holds {key[:60]!r}, which is of none of its networks")
        states[name][inner] = value
    return states, metadata


def _scorers(path: Path, metadata: dict[str, str]) -> list[str]:
    try:
        names = json.loads(metadata["scorers"])
    except (KeyError, ValueError, RecursionError):
        names = None
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise InputError(f"{path} does not say which networks it holds; train again or copy it anew")
    return names


def _in_order(content: bytes) -> bytes:
    """The same safetensors file with its header in one order: the library writes metadata in any.

    Layout: eight bytes with the length of the header, the header as JSON padded with spaces, the tensors.
    """
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    about = header.pop("__metadata__", {})
    ordered = {"__metadata__": dict(sorted(about.items())), **dict(sorted(header.items()))}
    text = json.dumps(ordered, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + content[end:]
