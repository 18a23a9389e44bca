"""What arguments say of data, as a validated data section."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mispair.data import DataConfig


def data_values(data: str | os.PathLike[str] | DataConfig | None, values: Mapping[str, Any]) -> dict[str, Any]:
    """What was said of a data section, and nothing that is there by default; a value that is None was not said."""
    from mispair.data import DataConfig
    from mispair.data.section_files import data_path

    said: dict[str, Any] = {}
    if isinstance(data, DataConfig):
        said = data.model_dump(mode="json", exclude_unset=True)
    elif data is not None:
        said = {"path": data_path(data)}
    return {**said, **{name: _plain(value) for name, value in values.items() if value is not None}}


def _plain(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return dict(value) if isinstance(value, Mapping) else value


def data_section(data: str | os.PathLike[str] | DataConfig, values: Mapping[str, Any]) -> DataConfig:
    """The data with these values of its section, all others by default."""
    from mispair.config.load import load_config

    return load_config(between={"data": data_values(data, values)}).data
