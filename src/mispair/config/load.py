"""YAML and `--set a.b=c` to a RunConfig; errors quote the path and the nearest valid name."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from mispair.config.schema import RunConfig
from mispair.errors import InputError


def load_config(
    path: Path | None = None,
    sets: Sequence[str] = (),
    base: dict[str, Any] | None = None,
    between: dict[str, Any] | None = None,
) -> RunConfig:
    """The configuration in `path` over `base`, then `between`, then `sets` ("a.b=c", values in YAML)."""
    values: dict[str, Any] = base or RunConfig().model_dump(mode="json")
    if path is not None:
        values = _merge(values, _read(path))
    values = _merge(values, between or {})
    for assignment in sets:
        values = _merge(values, _parse(assignment))
    return validate(values, str(path) if path else "the configuration")


def validate(values: dict[str, Any], where: str) -> RunConfig:
    try:
        return RunConfig.model_validate(values)
    except ValidationError as error:
        raise InputError(_sentence(error, where)) from None


def dump_config(config: RunConfig) -> str:
    """YAML that `load_config` reads back to the same configuration."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False)


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"there is no configuration file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as a configuration: {error}") from None
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise InputError(f"{path}{where} is not valid YAML; compare it with the files in configs/") from None
    if not isinstance(values, dict):
        raise InputError(f"{path} must hold sections like 'train:' and 'method:', got {type(values).__name__}")
    return values


def _parse(assignment: str) -> dict[str, Any]:
    key, equals, text = assignment.partition("=")
    if not equals or not key.strip():
        raise InputError(f"--set takes section.name=value, got {assignment!r}; for example --set train.epochs=10")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        raise InputError(f"--set {key}: {text!r} is not a value; quote text that holds special characters") from None
    for part in reversed(key.strip().split(".")):
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


def _sentence(error: ValidationError, where: str) -> str:
    """The first complaint as one sentence."""
    found = error.errors()
    # Of a value that may be a word or a number ("auto" or 0.1), the number's complaint says more.
    first = next((e for e in found if not str(e["loc"][-1:]).startswith('("literal[')), found[0])
    steps = [str(step) for step in first["loc"] if str(step) not in ("constrained-float", "float")]
    # Discriminated unions put the chosen name into the path: method.l2rm.mass -> method.mass
    path = [s for i, s in enumerate(steps) if not (i == 1 and steps[0] in ("model", "method") and len(steps) > 2)]
    dotted = ".".join(path) or "it"
    if first["type"] == "extra_forbidden":
        known = _names_at(steps)
        near = difflib.get_close_matches(path[-1], known, n=1, cutoff=0.4)
        hint = f"did you mean {'.'.join([*path[:-1], near[0]])}?" if near else f"known are {', '.join(known)}"
        return f"{where}: there is no {dotted}; {hint}"
    if first["type"] == "union_tag_invalid":
        context = first.get("ctx", {})
        return f"{where}: {dotted}.name={context.get('tag')} is unknown; known are {context.get('expected_tags')}"
    message = first["msg"].removeprefix("Value error, ")
    given = first.get("input")
    shown = "" if isinstance(given, (dict, BaseModel)) or first["type"] == "value_error" else f", got {given!r}"
    subject = "" if first["type"] == "value_error" and not path else f"{dotted}: "
    return f"{where}: {subject}{message[0].lower() + message[1:]}{shown}"


def _names_at(steps: list[str]) -> list[str]:
    """The valid names beside an unknown one."""
    sections: list[Any] = [RunConfig]
    for step in steps[:-1]:
        named = [s for s in sections if "name" in s.model_fields and s.model_fields["name"].default == step]
        annotations = [s.model_fields[step].annotation for s in sections if step in s.model_fields]
        options = [option for a in annotations for option in (getattr(a, "__args__", None) or (a,))]
        sections = named or [option for option in options if hasattr(option, "model_fields")]
    return sorted({name for section in sections for name in section.model_fields})
