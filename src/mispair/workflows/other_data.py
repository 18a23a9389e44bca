"""Data that a run was not trained on, read as the run reads its own; the command line and Python ask here."""

from __future__ import annotations

import os
from pathlib import Path

from mispair.data import DataConfig
from mispair.data.embedded_folder import EmbeddedFolder
from mispair.data.section_files import data_path
from mispair.encoders.registry import open_encoder
from mispair.errors import InputError
from mispair.progress import Tell, silent
from mispair.workflows.embed import DEFAULT, Encoding, with_features
from mispair.workflows.trained_run import TrainedRun

_SAME = ("sides", "min_count", "max_words", "encoder", "cells", "live")


def like_own(own: DataConfig, given: DataConfig) -> DataConfig:
    """`given` with the sides, words and encoder of a run's own data, and what to do about missing pictures or features.

    That last is taken over where `given` does not say; nothing else is.
    """
    same = _SAME if "missing" in given.model_fields_set else (*_SAME, "missing")
    return given.model_copy(update={name: getattr(own, name) for name in same})


def read_as(run: TrainedRun, config: DataConfig, tell: Tell = silent) -> DataConfig:
    """Other data with features: pictures are encoded as those the run was trained on, captions too.

    Towers that learned read the pictures themselves: there is nothing to encode.
    """
    own = run.config.data
    if config.live:
        return config
    refuse_other_encoder(own, config)
    encoding = Encoding(own.encoder or DEFAULT, own.cells, texts=own.encoder is not None and own.second is not None)
    return with_features(config, encoding, tell)


def refuse_other_encoder(own: DataConfig, given: DataConfig) -> None:
    """Raise InputError where `given` is a folder of `mispair embed` by another encoder than a run's own data.

    Equal names or equal fingerprints are the same encoder. Where the run's is not here to be asked, nobody can tell.
    """
    folder = EmbeddedFolder(Path(given.path))
    if own.encoder is None or given.features is not None or not folder.begun:
        return
    made_by = folder.made_by()
    if (
        made_by.encoder != own.encoder
        and made_by.fingerprint not in ("", fingerprint := _fingerprint(own))
        and fingerprint
    ):
        raise InputError(
            f"{given.path} holds vectors by the encoder '{made_by.encoder}', and the run learned from vectors by"
            f" '{own.encoder}': embed the data with that one"
        )


def _fingerprint(own: DataConfig) -> str:
    """Of the encoder a run's data went through; empty where neither a folder of `mispair embed` nor the weights say."""
    folder = EmbeddedFolder(Path(own.path))
    try:
        return (
            folder.made_by().fingerprint if folder.begun else open_encoder(str(own.encoder), download=False).fingerprint
        )
    except InputError:
        return ""


def other_data(run: TrainedRun, data: str | os.PathLike[str] | DataConfig, tell: Tell = silent) -> DataConfig:
    """What an argument `data` of the front door names: a path is read like the run's own data, a section as it is."""
    if isinstance(data, DataConfig):
        return read_as(run, data, tell)
    return read_as(run, like_own(run.config.data, DataConfig(path=data_path(data))), tell)
