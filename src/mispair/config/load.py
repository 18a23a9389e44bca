"""YAML and `--set a.b=c` to a RunConfig; errors quote the path and the nearest valid name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from mispair.config.schema import RunConfig
from mispair.data.files.reading import read_text
from mispair.data.section_files import files_found_from, files_of, files_seen_from, place_files
from mispair.errors import InputError
from mispair.methods import METHODS
from mispair.models import MODELS
from mispair.nested_values import lay_over, parse_assignment
from mispair.ordinary_file import NOTES
from mispair.section_errors import first_complaint, names_at, sections_at
from mispair.shipped_files import find_config
from mispair.value_words import kind_of
from mispair.yaml_values import read_yaml


def load_config(path: Path | None = None, sets: Sequence[str] = (), between: dict[str, Any] | None = None) -> RunConfig:
    """The configuration in `path` over the defaults, then `between`, then `sets` ("a.b=c", values in YAML).

    `path` is a file, or a name such as f30k/l2rm-sgr.
    """
    return validate(merge_values(path, sets, between=between), str(path) if path else "the configuration")


def merge_values(
    path: Path | None,
    sets: Sequence[str] = (),
    base: dict[str, Any] | None = None,
    between: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The values `load_config` validates: `base`, then `path`, `between` and `sets`, the later ones winning.

    base: by default those of `RunConfig`.
    """
    values: dict[str, Any] = base or RunConfig().model_dump(mode="json")
    if path is not None:
        path = find_config(path)
        values = lay_over(values, _read(path))
    values = lay_over(values, between or {})
    for assignment in sets:
        values = lay_over(values, parse_assignment(assignment))
    return values


def validate(values: dict[str, Any], where: str) -> RunConfig:
    """The values as a configuration; `where` begins the sentence of the InputError that refuses them."""
    try:
        return RunConfig.model_validate(values)
    except ValidationError as error:
        raise InputError(first_complaint(error, where, lambda path: _names_beside(path, values))) from None


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


_NEAR = "relative_paths"  # a section beside those of RunConfig: the files of `data` as seen from the configuration


def _read(path: Path) -> dict[str, Any]:
    values = read_yaml(
        read_text(path, "a configuration in YAML", NOTES), str(path), "compare it with the files in configs/"
    )
    if not isinstance(values, dict):
        raise InputError(f"{path} must hold sections like 'train:' and 'method:', got {kind_of(values)}")
    near, data = values.pop(_NEAR, None), values.get("data")
    if isinstance(near, dict) and isinstance(data, dict):
        place_files(data, files_found_from(data, near, path.parent))
    return values


def _names_beside(path: list[str], values: dict[str, Any]) -> dict[str, str]:
    """The valid names beside an unknown one at `path`, and those one section further down: name -> place from there."""
    sections: list[Any] = [RunConfig]
    for depth, step in enumerate(path[:-1]):
        if depth == 0 and step in ("method", "model"):
            sections = [(METHODS if step == "method" else MODELS).config_of(values[step]["name"])]
        else:
            sections = [inner for section in sections for inner in sections_at(section, step)]
    return names_at(sections)
