"""The files a data section names, as values of a configuration: in full, and as seen from a folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mispair.data.config import DataConfig
from mispair.errors import InputError


def data_path(data: str | os.PathLike[str]) -> str:
    """The path by which data is named. Raises InputError for data in memory, since files are what is read."""
    try:
        return os.fspath(data)
    except TypeError:
        raise InputError(
            f"data is a path, got {type(data).__name__}; save what is in memory first, such as"
            " frame.to_parquet('pairs.parquet')"
        ) from None


def files_of(data: Mapping[str, Any]) -> dict[str, str]:
    """The files that the values of a data section name, by key; "noise.index" for the one inside `noise`."""
    named = {
        name: data.get(name)
        for name in ("path", "second", "features", "joint", "ids", "images", "vocabulary", "decisions")
    }
    noise = data.get("noise")
    named["noise.index"] = noise.get("index") if isinstance(noise, dict) else None
    return {name: file for name, file in named.items() if isinstance(file, str) and (name, file) != ("path", "scenes")}


def full_paths(data: Mapping[str, Any]) -> dict[str, str]:
    """The files with their full paths, but for the one inside `noise`: what holds wherever it is read."""
    return {name: os.path.abspath(file) for name, file in files_of(data).items() if "." not in name}


def values_in_full(config: DataConfig) -> dict[str, Any]:
    """The values of the section with the full paths of all its files: they can be opened from any folder."""
    values = config.model_dump(mode="json")
    place_files(values, {name: os.path.abspath(file) for name, file in files_of(values).items()})
    return values


def place_files(data: dict[str, Any], files: Mapping[str, str | None]) -> None:
    """Put other paths in the place of those `files_of` gives."""
    for name, file in files.items():
        section, _, key = name.rpartition(".")
        (data[section] if section else data)[key] = file


def files_seen_from(data: Mapping[str, Any], folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """The files with their full paths, and as seen from `folder`."""
    full = {name: os.path.abspath(file) for name, file in files_of(data).items()}
    real = {name: os.path.join(os.path.realpath(os.path.dirname(f)), os.path.basename(f)) for name, f in full.items()}
    return full, {name: os.path.relpath(file, os.path.realpath(folder)) for name, file in real.items()}


def files_found_from(data: Mapping[str, Any], near: Mapping[str, Any], folder: Path) -> dict[str, str]:
    """Of the paths `near`, written as seen from `folder`, those at which something is."""
    home = os.path.realpath(folder)
    seen = {name: os.path.normpath(os.path.join(home, str(near[name]))) for name in files_of(data) if name in near}
    return {name: file for name, file in seen.items() if os.path.lexists(file)}
