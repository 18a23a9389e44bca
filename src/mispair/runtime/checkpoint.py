"""What is saved and how: the only place that writes or reads a run's state.

`last/state.pt` holds everything to go on (tensors, numbers and strings only: it is read with `weights_only`, so it
cannot execute code). `model.safetensors` holds the weights that score, nothing else. Every file is written under a
temporary name, flushed to disk and renamed, so a kill or a full disk leaves the previous one intact.
"""

from __future__ import annotations

import errno
import json
import os
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from mispair.errors import InputError

FORMAT = 1


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Call `write` on a temporary neighbour of `path`, flush it to disk, and rename it over `path`."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(temporary)
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise InputError(
                f"the disk is full: {path} could not be written; the previous save is intact, "
                "so free some space and go on with --resume"
            ) from error
        raise InputError(f"{path} could not be written: {error.strerror}") from error
    except RuntimeError as error:  # torch's writer reports a full disk this way
        temporary.unlink(missing_ok=True)
        raise InputError(
            f"{path} could not be written ({error}); is the disk full? The previous save is intact"
        ) from error
    except BaseException:  # a second Ctrl-C
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def clear_leftovers(folder: Path) -> None:
    """Remove what a killed run was writing when it was killed."""
    for leftover in (*folder.glob(".*.tmp"), *(folder / "last").glob(".*.tmp")):
        leftover.unlink(missing_ok=True)


def save_state(folder: Path, state: dict[str, Any]) -> None:
    """Everything needed to go on."""
    write_atomically(folder / "last" / "state.pt", lambda path: torch.save({"format": FORMAT, **state}, path))


def load_state(folder: Path) -> dict[str, Any]:
    path = folder / "last" / "state.pt"
    if not path.exists():
        raise InputError(f"{folder} cannot be resumed: it has no last/state.pt; start it with 'mispair train' first")
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, pickle.UnpicklingError, OSError, KeyError, ValueError) as error:
        raise InputError(f"{path} is damaged or not a checkpoint of mispair; start the run again") from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise InputError(f"{path} was written by another version of mispair; start the run again")
    return state


def save_model(path: Path, modules: Mapping[str, nn.Module], scorers: tuple[str, ...], about: dict[str, str]) -> None:
    """Weights of the modules that score, with what is needed to build them."""
    tensors = {
        f"{name}.{key}": value.detach().cpu().contiguous()
        for name in scorers
        for key, value in modules[name].state_dict().items()
    }
    metadata = {"format": str(FORMAT), "scorers": json.dumps(scorers), **about}
    write_atomically(path, lambda temporary: temporary.write_bytes(save(tensors, metadata)))


def load_model(path: Path) -> tuple[dict[str, dict[str, Tensor]], dict[str, str]]:
    """Weights by scorer, and the metadata."""
    if not path.exists():
        raise InputError(f"{path.parent} is not a finished run: it has no {path.name}")
    try:
        with safe_open(path, "pt") as file:
            metadata: dict[str, str] = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} is damaged ({error}); train again or copy it anew") from error
    if metadata.get("format") != str(FORMAT):
        raise InputError(f"{path} is not a model of this version of mispair")
    states: dict[str, dict[str, Tensor]] = {name: {} for name in json.loads(metadata["scorers"])}
    for key, value in tensors.items():
        name, inner = key.split(".", 1)
        states.setdefault(name, {})[inner] = value
    return states, metadata
