"""From the arguments of `mispair.train` to a configuration."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mispair.errors import InputError

if TYPE_CHECKING:
    from torch import nn

    from mispair.config.schema import RunConfig
    from mispair.encoders.protocol import Encoder
    from mispair.models import InputSizes
    from mispair.section import Section

    PathLike = str | os.PathLike[str]
    Model = str | Section | Mapping[str, Any] | nn.Module | Callable[[InputSizes], nn.Module]


def run_config(
    data: dict[str, Any],
    config: PathLike | RunConfig | None,
    method: str | Section | Mapping[str, Any] | None,
    model: Model | None,
    network: nn.Module | Callable[[InputSizes], nn.Module] | None,
    options: Mapping[str, Any] | None,
    budget: dict[str, Any],
) -> tuple[RunConfig, dict[str, str]]:
    """The configuration that the arguments of `train` make, and the reasons for what was chosen."""
    from mispair.config.choose import configure
    from mispair.config.schema import RunConfig
    from mispair.workflows.networks import describe

    for name in ("epochs", "batch_size", "seed"):  # what is chosen is counted with them before anything is validated
        value = budget.get(name)
        if value is not None and not isinstance(value, Integral):
            raise InputError(f"{name} is a whole number, got {value!r}")
    base = config.model_dump(mode="json") if isinstance(config, RunConfig) else None
    backbone = {"name": "own", "describes": describe(network)} if network is not None else _said("model", model)
    return configure(
        data,
        config=None if config is None or isinstance(config, RunConfig) else Path(config),
        base=base,
        method=_said("method", method),
        model=backbone,
        sets=[_assignment(name, value) for name, value in (options or {}).items()],
        **budget,
    )


def encoded_values(data: dict[str, Any], encoder: str | Encoder | None, model: Model | None) -> dict[str, Any]:
    """Values of a data section that encoding its pictures adds; none where they are vectors already.

    A model that compares words reads captions as words, however few they are.
    """
    from mispair.config.load import load_config
    from mispair.models import encodes_one_vector
    from mispair.workflows.embed import DEFAULT, Encoding, needs_encoding, with_features

    config = load_config(between={"data": data}).data
    if encoder is not None and not needs_encoding(config):
        raise InputError(f"{config.path} brings its features: leave the encoder out")
    how = Encoding(config.encoder or DEFAULT, config.cells) if encoder is None else Encoding(encoder)
    named = model.get("name") if isinstance(model, Mapping) else getattr(model, "name", model)
    if isinstance(named, str) and not encodes_one_vector(named):
        how = replace(how, texts=False)
    return with_features(config, how).changes_since(config)


def live_values(data: dict[str, Any], encoder: str | Encoder | None, tune: str) -> dict[str, Any]:
    """Values of a data section whose pictures are read in every batch, by the towers of an encoder that learn."""
    name = encoder if encoder is not None else data.get("encoder")
    if not isinstance(name, str):
        raise InputError(f"tune={tune!r} trains the towers of an encoder of the hub: name it with encoder='clip-b32'")
    from mispair.encoders.tower_inputs import TowerInputs

    return {"encoder": TowerInputs(name).name, "live": True}


def _said(section: str, given: object) -> str | dict[str, Any] | None:
    """What was said of a section: a name, or its values."""
    from mispair.section import Section

    if given is None or isinstance(given, str):
        return given
    if isinstance(given, Section):
        return given.model_dump(mode="json")
    if isinstance(given, Mapping):
        return dict(given)
    raise InputError(f"{section} is a name, a configuration or a dictionary of its values, got {repr(given)[:80]}")


def _assignment(name: str, value: object) -> str:
    """An option as `--set` takes it; numbers of numpy and torch, paths and sections are plain values there."""
    import json

    from mispair.section import Section

    def plain(given: Any) -> Any:
        if isinstance(given, os.PathLike):
            return os.fspath(given)
        if isinstance(given, Section):
            return given.model_dump(mode="json")
        if hasattr(given, "tolist"):
            return given.tolist()
        raise InputError(f"{name} takes a number, a text, a list or a dictionary, got {type(given).__name__}")

    return f"{name}={json.dumps(value, default=plain, ensure_ascii=False)}"
