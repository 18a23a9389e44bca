"""A folder that `mispair embed` wrote, read as the pictures and captions it came from would be."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from mispair.config.schema import RunConfig
from mispair.data.config import DataConfig
from mispair.data.embedded_folder import EmbeddedFolder


def embedded_before(config: DataConfig, texts: bool | None = None) -> DataConfig:
    """A folder that `mispair embed` wrote with what it holds, as the data it came from would be read; else as it is.

    Args:
        texts: whether captions are read as the encoder's vectors; None: unless pictures are grids, as everywhere.
    """
    files = EmbeddedFolder(Path(config.path))
    if config.path == "scenes" or config.features is not None or not files.begun:
        return config
    made_by = files.made_by()
    update: dict[str, Any] = {"encoder": made_by.encoder, "cells": made_by.cells}
    if texts is None:
        texts = not made_by.cells
    vectors = str(files.texts_file)
    if config.second is None and texts and files.texts_file.exists():
        update["second"] = vectors
    second = update.get("second", config.second)
    if second is not None and os.path.realpath(second) == os.path.realpath(vectors) and files.joint_file.exists():
        update["joint"] = str(files.joint_file)
    return config.model_copy(update=update)


def as_embedded(config: RunConfig) -> RunConfig:
    """A configuration that names a folder of `mispair embed`, with what that folder says of itself.

    Captions stay what the configuration makes of them: vectors where it names some, else words.
    """
    data = embedded_before(config.data, texts=config.data.second is not None)
    return config if data is config.data else config.model_copy(update={"data": data})
