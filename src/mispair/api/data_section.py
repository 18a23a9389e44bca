"""What arguments say of data, as a validated data section."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mispair.data import DataConfig


def data_section(data: str | os.PathLike[str] | DataConfig, values: Mapping[str, Any]) -> DataConfig:
    """The data with these values of its section; a value that is None was not said."""
    from mispair.config.load import load_config
    from mispair.data import DataConfig

    said = data.model_dump(mode="json") if isinstance(data, DataConfig) else {"path": os.fspath(data)}
    given = {name: value for name, value in values.items() if value is not None}
    files = {name: os.fspath(value) if isinstance(value, os.PathLike) else value for name, value in given.items()}
    return load_config(between={"data": {**said, **files}}).data
