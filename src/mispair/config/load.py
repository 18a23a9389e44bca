"""YAML and `--set a.b=c` to a RunConfig; errors quote the path and the nearest valid name."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from mispair.config.schema import RunConfig
from mispair.data.section_files import files_found_from, files_of, files_seen_from, place_files
from mispair.errors import InputError
from mispair.methods import METHODS
from mispair.models import MODELS
from mispair.shipped_files import find_config
from mispair.yaml_values import read_yaml, shorten


def load_config(
    path: Path | None = None,
    sets: Sequence[str] = (),
    base: dict[str, Any] | None = None,
    between: dict[str, Any] | None = None,
) -> RunConfig:
    """The configuration in `path` over `base`, then `between`, then `sets` ("a.b=c", values in YAML).

    `path` is a file, or a name such as f30k/l2rm-sgr.
    """
    return validate(merge_values(path, sets, base, between), str(path) if path else "the configuration")


def merge_values(
    path: Path | None,
    sets: Sequence[str] = (),
    base: dict[str, Any] | None = None,
    between: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The same, not yet validated."""
    values: dict[str, Any] = base or RunConfig().model_dump(mode="json")
    if path is not None:
        path = find_config(path)
        values = _merge(values, _read(path))
    values = _merge(values, between or {})
    for assignment in sets:
        values = _merge(values, _parse(assignment))
    return values


def validate(values: dict[str, Any], where: str) -> RunConfig:
    try:
        return RunConfig.model_validate(values)
    except ValidationError as error:
        raise InputError(_sentence(error, where, values)) from None


def dump_config(config: RunConfig, folder: Path | None = None) -> str:
    """YAML that `load_config` reads back to the same configuration.

    For a file in `folder`: the paths of the data are written in full, and once more as seen from there, so that the
    configuration holds from any directory and after folder and data were moved together.
    """
    values = config.model_dump(mode="json")
    if folder is None:
        return yaml.safe_dump(values, sort_keys=False)
    full, near = files_seen_from(values["data"], folder)
    place_files(values["data"], full)
    return yaml.safe_dump({**values, **({_NEAR: near} if near else {})}, sort_keys=False)


def essence(config: RunConfig) -> dict[str, Any]:
    """The values that decide a result: not where the data lies, nor on what device."""
    values = config.model_dump(mode="json")
    place_files(values["data"], {"path": None, **dict.fromkeys(files_of(values["data"]))})
    values["engine"].pop("device")
    return values


_DEEPEST = 8  # names in a path such as data.noise.rate
_NEAR = "relative_paths"  # a section beside those of RunConfig: the files of `data` as seen from the configuration


def _read(path: Path) -> dict[str, Any]:
    if os.path.exists(path) and not os.path.isfile(path):  # a pipe or a device could be read for ever
        raise InputError(f"{path} is not an ordinary file; expected a configuration in YAML")
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"there is no configuration file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as a configuration: {error}") from None
    values = read_yaml(text, str(path), "compare it with the files in configs/")
    if not isinstance(values, dict):
        raise InputError(f"{path} must hold sections like 'train:' and 'method:', got {type(values).__name__}")
    near, data = values.pop(_NEAR, None), values.get("data")
    if isinstance(near, dict) and isinstance(data, dict):
        place_files(data, files_found_from(data, near, path.parent))
    return values


def _parse(assignment: str) -> dict[str, Any]:
    key, equals, text = assignment.partition("=")
    if not equals or not key.strip():
        raise InputError(
            f"--set takes section.name=value, got {shorten(assignment)}; for example --set train.epochs=10"
        )
    value = read_yaml(text, f"--set {key[:60]}", "quote text that holds special characters")
    for part in reversed(key.strip().split(".", _DEEPEST)):
        value = {part: value}
    assert isinstance(value, dict)
    return value


def _merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """`over` wins; a section that changes its `name` starts from its own defaults."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            renamed = "name" in value and value["name"] != old.get("name")
            merged[key] = value if renamed else _merge(old, value)
        else:
            merged[key] = value
    return merged


def _sentence(error: ValidationError, where: str, values: dict[str, Any]) -> str:
    """The first complaint as one sentence."""
    complaints = error.errors()
    # Of a value that may be a word or a number ("auto" or 0.1), the number's complaint says more.
    first = next((e for e in complaints if not str(e["loc"][-1:]).startswith('("literal[')), complaints[0])
    path = [str(step) for step in first["loc"] if str(step) not in ("constrained-float", "float")]
    path = [step if len(step) <= 60 else f"{step[:60]}..." for step in path]
    dotted = ".".join(path) or "it"
    if first["type"] == "extra_forbidden":
        known = _names_beside(path, values)
        near = difflib.get_close_matches(path[-1], known, n=1, cutoff=0.4)
        hint = f"did you mean {'.'.join([*path[:-1], known[near[0]]])}?" if near else f"known are {', '.join(known)}"
        return f"{where}: there is no {dotted}; {hint}"
    message = first["msg"].removeprefix("Value error, ")
    given = first.get("input")
    shown = "" if isinstance(given, (dict, BaseModel)) or first["type"] == "value_error" else f", got {shorten(given)}"
    subject = "" if first["type"] == "value_error" and not path else f"{dotted}: "
    return f"{where}: {subject}{message[0].lower() + message[1:]}{shown}"


def _names_beside(path: list[str], values: dict[str, Any]) -> dict[str, str]:
    """The valid names beside an unknown one at `path`, and those one section further down: name -> place from there."""
    sections: list[Any] = [RunConfig]
    for depth, step in enumerate(path[:-1]):
        if depth == 0 and step in ("method", "model"):
            sections = [(METHODS if step == "method" else MODELS).config_of(values[step]["name"])]
        else:
            sections = [inner for section in sections for inner in _sections_at(section, step)]
    names = {name: name for section in sections for name in sorted(section.model_fields)}
    below = {
        inner: f"{name}.{inner}"
        for section in sections
        for name in section.model_fields
        for part in _sections_at(section, name)
        for inner in part.model_fields
    }
    return below | names if len(path) > 1 else names


def _sections_at(section: Any, name: str) -> list[Any]:
    """The sections a field may hold."""
    annotation = section.model_fields[name].annotation if name in section.model_fields else None
    options = getattr(annotation, "__args__", None) or (annotation,)
    return [option for option in options if hasattr(option, "model_fields")]
