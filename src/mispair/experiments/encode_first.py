"""Data of pictures in an experiment: encoded once beside its cells, which all read the features."""

from __future__ import annotations

from pathlib import Path

from mispair.data.config import DataConfig
from mispair.data.embedded_folder import EmbeddedFolder
from mispair.data.files.tar_names import names_nothing
from mispair.encoders.registry import open_encoder
from mispair.errors import InputError
from mispair.missing_path import does_not_exist
from mispair.progress import Tell, silent
from mispair.workflows.embed import Encoding, needs_encoding
from mispair.workflows.embed_folder import embed


def refuse_missing_data(data: str) -> None:
    """Raise InputError where nothing is at the path of an experiment's data."""
    if names_nothing(data):
        raise InputError(f"{does_not_exist(data)}; --data takes a folder or a table")


def encoded_for(config: DataConfig, encoding: Encoding, asked: bool, out: Path, tell: Tell = silent) -> str:
    """Where the features of the data are: itself, or OUT/data/NAME with the pictures that it has instead.

    Args:
        asked: whether a person said how to encode or where pictures are; refused for data that brings features.
        out: folder of the grid. What lies in its OUT/data is taken as it is, made by the same encoder.

    Raises:
        InputError: nothing is to be encoded; OUT/data was made by another encoder; or as
            `embed` does.
    """
    if not needs_encoding(config):
        if asked:
            raise InputError(f"{config.path} brings its features: leave options of pictures, tables and encoders out")
        return config.path
    folder = out / "data" / Path(config.path).stem
    if not folder.exists():
        embed(config, encoding, folder, tell)
        return str(folder)
    made_by, encoder = EmbeddedFolder(folder).made_by(), open_encoder(encoding.encoder, device=encoding.device)
    if (made_by.encoder, made_by.cells) != (encoder.name, encoding.cells):
        way = f"'{made_by.encoder}'{' with' if made_by.cells else ' without'} cells"
        raise InputError(f"{folder} was made by {way}; ask for that again, or give another --out")
    return str(folder)
