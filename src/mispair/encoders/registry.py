"""Which encoder a name means: `basic`, a short name, a hub id, a folder of weights, a package's or your own."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec

from mispair.devices import find_device
from mispair.encoders import basic
from mispair.encoders.own import TwoEncoders
from mispair.encoders.protocol import Encoder, EncoderAbout
from mispair.errors import InputError

GROUP = "mispair.encoders"  # entry points: a package offers NAME = "module:factory"
Factory = Callable[..., Encoder]  # factory(device=..., cells=...)


@dataclass(frozen=True, slots=True)
class _Hub:
    """A model of the hub worth a short name."""

    repository: str
    good_for: str
    joint: bool
    megabytes: int
    licence: str


SHORT_NAMES = {
    "clip-b32": _Hub(
        "laion/CLIP-ViT-B-32-laion2B-s34B-b79K", "pictures and English texts in one space, the fastest of its kind",
        True, 605, "MIT",
    ),
    "siglip2-base": _Hub(
        "google/siglip2-base-patch16-224", "pictures and texts of many languages in one space: the first choice where "
        "a hub can be reached", True, 1500, "Apache-2.0",
    ),
    "dinov2-small": _Hub(
        "facebook/dinov2-small", "pictures only, cells for training; texts by another encoder: dinov2-small+basic",
        False, 88, "Apache-2.0",
    ),
    "minilm": _Hub(
        "sentence-transformers/all-MiniLM-L6-v2", "English texts only: sentence vectors and tokens", False, 91,
        "Apache-2.0",
    ),
    "minilm-multilingual": _Hub(
        "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2", "texts only, of 50 languages", False, 471,
        "Apache-2.0",
    ),
}  # fmt: skip
_REGISTERED: dict[str, Factory] = {}


def register_encoder(name: str, factory: Factory) -> None:
    """Let `name` mean your encoder: `factory(device=..., cells=...)` makes it when it is asked for."""
    if name == "basic" or name in SHORT_NAMES:
        raise InputError(f"'{name}' is an encoder of mispair; choose another name")
    _REGISTERED[name] = factory


def open_encoder(
    name: str | Encoder, *, device: str = "auto", cells: int = 6, precision: str = "auto", download: bool = True
) -> Encoder:
    """The encoder `name` means; an encoder is given back as it is.

    Args:
        name: "basic"; a short name ("siglip2-base"); a hub id ("google/siglip2-base-patch16-224"), both with "@" and a
            revision if you like; a folder of weights; the name of an entry point or of `register_encoder`; or A+B for
            the pictures of A and the texts of B.
        device: "auto" (an accelerator where there is one), "cpu", "cuda", "cuda:1", "mps".
        cells: cells a side of the output "cells".
        precision: of hub models: "auto", "float32", "bfloat16".
        download: whether the hub may be asked for weights that are not here.

    Raises:
        InputError: there is no such encoder, its weights are not here, or they cannot be used.
    """
    if not isinstance(name, str):
        return name
    device = find_device(device)
    if os.path.isdir(name):
        folder = os.path.abspath(name)  # whoever writes the name down may be read from another folder
        return _hub(folder, folder, device, cells, precision, download)
    if "+" in name:
        first, _, second = name.partition("+")
        pictures, words = (
            open_encoder(part, device=device, cells=cells, precision=precision, download=download)
            for part in (first, second)
        )
        return TwoEncoders(pictures, words)
    if name == "basic":
        return basic.BasicEncoder(device, cells)
    if name in _REGISTERED:
        return _REGISTERED[name](device=device, cells=cells)
    short, at, revision = name.partition("@")
    if short in SHORT_NAMES:
        return _hub(name, SHORT_NAMES[short].repository + at + revision, device, cells, precision, download)
    if "/" in name:
        return _hub(name, name, device, cells, precision, download)
    offered = _offered()
    if name in offered:
        return _from_package(offered[name], device, cells)
    names = ["basic", *SHORT_NAMES, *_REGISTERED, *offered]
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'?" if near else f"the names are {', '.join(names)}"
    raise InputError(f"there is no encoder '{name}': {hint} (a hub id has a slash, a folder must exist)")


def list_encoders() -> list[EncoderAbout]:
    """What `mispair encoders` shows; nothing is loaded or downloaded."""
    install = "" if find_spec("transformers") else "pip install 'mispair[hub]'; then: "
    listed = [basic.about()]
    for name, hub in SHORT_NAMES.items():
        here = _is_here(hub.repository)
        remedy = "" if here else f"{install}hf download {hub.repository}"
        listed.append(
            EncoderAbout(
                name, hub.good_for, hub.joint, hub.megabytes, hub.licence, f"hub: {hub.repository}", here, remedy
            )
        )
    for name in _REGISTERED:
        listed.append(EncoderAbout(name, "registered by this program", None, 0, "", "this program", True))
    for name, entry in _offered().items():
        listed.append(
            EncoderAbout(name, "offered by an installed package", None, 0, "", f"package: {entry.value}", True)
        )
    return listed


def _hub(name: str, source: str, device: str, cells: int, precision: str, download: bool) -> Encoder:
    from mispair.encoders.weights import find_weights

    weights = find_weights(source, download=download)
    if weights.revision:  # whoever writes the name down means these weights, and none that come later
        name = f"{name.partition('@')[0]}@{weights.revision}"
    from mispair.encoders.hub import HubEncoder

    return HubEncoder(name, weights, device=device, cells=cells, precision=precision)


def _is_here(repository: str) -> bool:
    from mispair.encoders.weights import find_weights

    try:
        find_weights(repository, download=False)
    except InputError:
        return False
    return True


def _offered() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _from_package(entry: EntryPoint, device: str, cells: int) -> Encoder:
    try:
        made: Encoder = entry.load()(device=device, cells=cells)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"the encoder '{entry.name}' of {entry.value} cannot be made ({type(error).__name__}: {error})"
        ) from error
    return made
